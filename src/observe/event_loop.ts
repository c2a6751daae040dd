import type { Family } from './family.ts';
import { openTally, SECONDS } from './tally.ts';

/** Measures how late what is due in this process comes. */
export interface LoopWatch {
  read(): readonly Family[];
  stop(): void;
}

const SAMPLE_MS = 100;

export function watchLoop(): LoopWatch {
  const delays = openTally();
  let due = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.add(Math.max(0, now - due) / 1_000);
    due = now + SAMPLE_MS;
  }, SAMPLE_MS);
  timer.unref();
  return {
    read: () => [
      {
        kind: 'histogram',
        name: 'authrealm_event_loop_delay_seconds',
        help: `How late a timer came that is due every ${SAMPLE_MS} ms.`,
        bounds: SECONDS,
        distributions: [delays.read({})],
      },
    ],
    stop: () => clearInterval(timer),
  };
}
