/** Between starts of workers that fail, so that a worker that cannot start takes no processor. */
const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5_000;

/** The pause after a failure: it doubles until it is reset. */
export interface BackOff {
  isWaiting(): boolean;
  /** Failures during a pause count as one. */
  begin(): void;
  reset(): void;
  stop(): void;
}

/** `resume` is called at the end of each pause, which keeps no process alive. */
export function openBackOff(resume: () => void): BackOff {
  let nextMs = RESTART_MS_MIN;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    timer = undefined;
    resume();
  };
  return {
    isWaiting: () => timer !== undefined,
    begin() {
      if (timer) return;
      timer = setTimeout(end, nextMs).unref();
      nextMs = Math.min(nextMs * 2, RESTART_MS_MAX);
    },
    reset() {
      nextMs = RESTART_MS_MIN;
    },
    stop: () => clearTimeout(timer),
  };
}
