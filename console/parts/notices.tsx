import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Problem } from '../api/problem.ts';
import type { Fetched } from '../api/use_fetch.ts';
import { Icon, type IconName } from './icon.tsx';
import { useSecondsUntil } from './seconds_until.ts';

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
  const retryAt = useMemo(() => performance.now() + (problem.waitSeconds ?? 0) * 1_000, [problem]);
  const secondsLeft = useSecondsUntil(retryAt);
  return (
    <p>
      {secondsLeft > 0 && <span>Retrying in {secondsLeft} s. </span>}
      <button type="button" class="text-button" onClick={reload}>
        Retry now
      </button>
    </p>
  );
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
