import { useState } from 'preact/hooks';
import { type Problem, problemOf } from '../api/problem.ts';
import { ProblemNote } from '../parts/notices.tsx';

/** Runs something once at a time, and tells what became of it. `onStale` hears that somebody else was faster. */
export function useAct(done: () => void, onStale?: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = (act: () => Promise<void>) => {
    setBusy(true);
    setProblem(undefined);
    act()
      .then(done)
      .catch((error: unknown) => {
        const found = problemOf(error);
        setProblem(found);
        if (found.kind === 'stale') onStale?.();
      })
      .finally(() => setBusy(false));
  };
  return { isBusy, problem, run };
}

/** What the service complains about, in words of its own. */
export function Told({ problem }: { readonly problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <>
      <ProblemNote problem={problem} />
      {problem.complaints.map(({ detail }) => (
        <p key={detail} class="complaint">
          {detail}
        </p>
      ))}
    </>
  );
}
