import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Problem, toProblem } from './problem.ts';

/** The state of a fetch. The previous answer stays during a reload. */
export interface Fetched<T> {
  readonly answer: T | undefined;
  readonly problem: Problem | undefined;
  readonly isWaiting: boolean;
  readonly reload: () => void;
  /** Replaces the answer. */
  readonly setAnswer: (answer: T) => void;
}

type State<T> = Pick<Fetched<T>, 'answer' | 'problem' | 'isWaiting'>;

/**
 * Fetches on mount and whenever a dependency changes, which aborts the request before. Retries when a busy
 * service says so. `report` shows a partial answer.
 */
export function useFetch<T>(
  request: (signal: AbortSignal, report: (part: T) => void) => Promise<T>,
  dependencies: readonly unknown[],
): Fetched<T> {
  const [state, setState] = useState<State<T>>({ answer: undefined, problem: undefined, isWaiting: true });
  const [round, setRound] = useState(0);
  const latest = useRef(request);
  latest.current = request;
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const lastKey = useRef('');
  // Sends the request before the first paint.
  useLayoutEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const isSame = lastKey.current === JSON.stringify(dependencies);
    lastKey.current = JSON.stringify(dependencies);
    setState(({ answer, problem }) => ({
      answer: isSame ? answer : undefined,
      problem: isSame ? problem : undefined,
      isWaiting: true,
    }));
    const report = (part: T) => {
      if (!signal.aborted) setState({ answer: part, problem: undefined, isWaiting: true });
    };
    latest.current(signal, report).then(
      (answer) => {
        if (!signal.aborted) setState({ answer, problem: undefined, isWaiting: false });
      },
      (error: unknown) => {
        if (signal.aborted) return;
        const problem = toProblem(error);
        setState(({ answer }) => ({ answer, problem, isWaiting: false }));
      },
    );
    return () => controller.abort();
  }, [...dependencies, round]);
  useRetryAfter(state.problem, reload);
  const setAnswer = useCallback(
    (answer: T) => setState({ answer, problem: undefined, isWaiting: false }),
    [],
  );
  return { ...state, reload, setAnswer };
}

/** Retries after the time that the service asks for. */
export function useRetryAfter(problem: Problem | undefined, reload: () => void): void {
  useEffect(() => {
    if (problem?.waitSeconds === undefined) return;
    const timer = setTimeout(reload, problem.waitSeconds * 1_000);
    return () => clearTimeout(timer);
  }, [problem, reload]);
}
