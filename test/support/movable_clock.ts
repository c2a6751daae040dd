import type { Clock } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

/** The system clock plus an offset that a test advances. */
export interface MovableClock extends Clock {
  advance(milliseconds: number): void;
}

export function movableClock(): MovableClock {
  let offset = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
    advance: (milliseconds) => {
      offset += milliseconds;
    },
  };
}
