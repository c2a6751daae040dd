import { useState } from 'preact/hooks';
import { type Problem, toProblem } from '../api/problem.ts';
import { ProblemNote } from '../parts/notices.tsx';

/** Runs something once at a time, and tells what became of it. `onStale` hears that somebody else was faster. */
export function useAction(done: () => void, onStale?: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = (action: () => Promise<void>) => {
    setBusy(true);
    setProblem(undefined);
    action()
      .then(done)
      .catch((error: unknown) => {
        const failure = toProblem(error);
        setProblem(failure);
        if (failure.kind === 'stale') onStale?.();
      })
      .finally(() => setBusy(false));
  };
  return { isBusy, problem, run };
}

/** What the service complains about, in words of its own. */
export function ActionError({ problem }: { readonly problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <>
      <ProblemNote problem={problem} />
      {problem.errors.map(({ detail }) => (
        <p key={detail} class="field-error">
          {detail}
        </p>
      ))}
    </>
  );
}
