import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Problem, problemOf } from './problem.ts';

/** What has come of a question, so far. An older answer stays while it is asked again. */
export interface Asked<T> {
  readonly answer: T | undefined;
  readonly problem: Problem | undefined;
  readonly isWaiting: boolean;
  readonly again: () => void;
  /** Puts something that is known already in the place of the answer. */
  readonly put: (answer: T) => void;
}

type State<T> = Pick<Asked<T>, 'answer' | 'problem' | 'isWaiting'>;

/**
 * Asks when a part of the page comes up, and whenever one of `about` changes; what was asked before is called off, and
 * its answer dropped. A busy service is asked again when it said so. Who has a part of the answer tells it meanwhile.
 */
export function useAsked<T>(
  question: (signal: AbortSignal, tell: (part: T) => void) => Promise<T>,
  about: readonly unknown[],
): Asked<T> {
  const [state, setState] = useState<State<T>>({ answer: undefined, problem: undefined, isWaiting: true });
  const [round, setRound] = useState(0);
  const asking = useRef(question);
  asking.current = question;
  const again = useCallback(() => setRound((before) => before + 1), []);
  const topic = useRef('');
  // The page is drawn while the answer is on its way, and not before it is asked for.
  useLayoutEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const isSame = topic.current === JSON.stringify(about);
    topic.current = JSON.stringify(about);
    setState(({ answer, problem }) => ({
      answer: isSame ? answer : undefined,
      problem: isSame ? problem : undefined,
      isWaiting: true,
    }));
    const tell = (part: T) => {
      if (!signal.aborted) setState({ answer: part, problem: undefined, isWaiting: true });
    };
    asking.current(signal, tell).then(
      (answer) => {
        if (!signal.aborted) setState({ answer, problem: undefined, isWaiting: false });
      },
      (error: unknown) => {
        if (signal.aborted) return;
        const problem = problemOf(error);
        setState(({ answer }) => ({ answer, problem, isWaiting: false }));
      },
    );
    return () => controller.abort();
  }, [...about, round]);
  useAgain(state.problem, again);
  const put = useCallback((answer: T) => setState({ answer, problem: undefined, isWaiting: false }), []);
  return { ...state, again, put };
}

/** Asks again when the service said so. */
export function useAgain(problem: Problem | undefined, again: () => void): void {
  useEffect(() => {
    if (problem?.waitSeconds === undefined) return;
    const timer = setTimeout(again, problem.waitSeconds * 1_000);
    return () => clearTimeout(timer);
  }, [problem, again]);
}
