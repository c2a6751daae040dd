import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Problem } from '../api/problem.ts';
import type { Fetched } from '../api/use_fetch.ts';
import { Icon, type IconName } from './icon.tsx';

/** An error message with its request ID. */
export function ProblemNote({
  problem,
  reload,
}: {
  readonly problem: Problem;
  readonly reload?: () => void;
}) {
  return (
    <div class="note note-danger" role="alert">
      <Icon name="warning" />
      <div>
        <p>{problem.message}</p>
        {reload && <RetryLine problem={problem} reload={reload} />}
        {problem.requestId !== undefined && (
          <p class="faint small">
            Request <code>{problem.requestId}</code>
          </p>
        )}
      </div>
    </div>
  );
}

function RetryLine({ problem, reload }: { readonly problem: Problem; readonly reload: () => void }) {
  const secondsLeft = useCountdown(problem.waitSeconds ?? 0, problem);
  return (
    <p>
      {secondsLeft > 0 && <span>Retrying in {secondsLeft} s. </span>}
      <button type="button" class="text-button" onClick={reload}>
        Retry now
      </button>
    </p>
  );
}

const SECOND_MS = 1_000;

/** Counts down to zero; starts again when `cause` changes. */
function useCountdown(seconds: number, cause: unknown): number {
  const [secondsLeft, setLeft] = useState(seconds);
  useEffect(() => {
    setLeft(seconds);
    const timer = setInterval(() => setLeft((before) => Math.max(before - 1, 0)), SECOND_MS);
    return () => clearInterval(timer);
  }, [cause]);
  return secondsLeft;
}

/** An empty state: what belongs here, and what to do next. */
export function EmptyState({
  icon,
  title,
  children,
}: {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Renders a fetched answer, a loading line, or an error. */
export function Loaded<T>({
  fetched,
  children,
}: {
  readonly fetched: Fetched<T>;
  readonly children: (answer: T) => ComponentChildren;
}) {
  const { answer, problem, isWaiting, reload } = fetched;
  return (
    <>
      {problem && <ProblemNote problem={problem} reload={reload} />}
      {answer === undefined && !problem && isWaiting && <Loading />}
      {answer !== undefined && children(answer)}
    </>
  );
}

/** Fades in late, so that fast responses do not flicker. */
export function Loading() {
  return (
    <p class="waiting" role="status">
      Loading…
    </p>
  );
}
