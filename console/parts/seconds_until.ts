import { useEffect, useState } from 'preact/hooks';

const SECOND_MS = 1_000;

/** Whole seconds until an instant on the monotonic clock, down to zero. In background tabs browsers may delay it by a minute. */
export function useSecondsUntil(instant: number): number {
  const [, setNow] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  return Math.max(Math.ceil((instant - performance.now()) / SECOND_MS), 0);
}
