import type { Family } from './family.ts';
import { LATENCY_SECONDS, openHistogramCounts } from './histogram.ts';

/** Measures how late timers of this process are. */
export interface EventLoopWatch {
  collect(): readonly Family[];
  stop(): void;
}

const SAMPLE_MS = 100;

export function watchEventLoop(): EventLoopWatch {
  const delays = openHistogramCounts();
  let due = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.add(Math.max(0, now - due) / 1_000);
    due = now + SAMPLE_MS;
  }, SAMPLE_MS).unref();
  return {
    collect: () => [
      {
        kind: 'histogram',
        name: 'authrealm_event_loop_delay_seconds',
        help: `Delay of a timer that is due every ${SAMPLE_MS} ms.`,
        bounds: LATENCY_SECONDS,
        distributions: [delays.read({})],
      },
    ],
    stop: () => clearInterval(timer),
  };
}
