import { LIMITS } from '../model/limits.ts';

/** Time constant of the exponential decay of older measurements. */
const DECAY_MS = 1_000;

export type Admission = ReturnType<typeof openAdmission>;

/**
 * Load shedding for one kind of queued work (docs/decisions/0017-overload-and-rates.md). It measures the number of queued
 * jobs, and the throughput while any were queued. It never measures single jobs: the longer the queue, the more jobs share a
 * commit or a statement.
 */
export function openAdmission(now: () => number = () => performance.now()) {
  let queued = 0;
  let done = 0;
  let busyMs = 0;
  let since = 0;

  function measure(leaving: number, finished: number): void {
    const at = now();
    const elapsed = at - since;
    const weight = Math.exp(-elapsed / DECAY_MS);
    busyMs = busyMs * weight + elapsed;
    done = done * weight + finished;
    since = at;
    queued -= leaving;
  }

  return {
    /**
     * Whether new work would wait for longer than LIMITS.workWaitMsMax, estimated from recent throughput; with few jobs
     * queued, for longer than LIMITS.workOverdueMsMax.
     */
    isOverloaded(): boolean {
      if (queued < LIMITS.workSampleMin || done === 0) return false;
      // Without the time since the last result: a pause of the engine does not count here.
      if (queued * busyMs > LIMITS.workOverdueMsMax * done) return true;
      return (
        queued >= LIMITS.workAdmittedMin && queued * (busyMs + now() - since) > LIMITS.workWaitMsMax * done
      );
    },
    /** One job was queued. */
    enter(): void {
      if (queued === 0) since = now();
      queued += 1;
    },
    /** `count` jobs are done. */
    leave: (count: number) => measure(count, count),
    /** `count` jobs were given up. */
    giveUp: (count: number) => measure(count, 0),
  };
}
