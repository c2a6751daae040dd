import { LIMITS } from '../domain/limits.ts';

/** Watches over one kind of work that waits its turn (decision 0017). */
export interface Admission {
  /**
   * Whether a piece that came now would wait for longer than LIMITS.workWaitMsMax, by what the last ones took; where few
   * are inside, whether it would for longer than LIMITS.workOverdueMsMax.
   */
  isOverloaded(): boolean;
  /** One more waits or is under way. */
  enter(): void;
  /** So many are done. */
  leave(count: number): void;
  /** So many were given up. */
  giveUp(count: number): void;
}

/** What was longer ago counts for a third, and so on. */
const MEMORY_MS = 1_000;

/**
 * A gate knows how many are inside, and how many were done in the time that any were: the longer a queue is, the more
 * share a commit or a statement, so nothing is said about pieces, but about all of them together.
 */
export function openAdmission(now: () => number = () => performance.now()): Admission {
  let inside = 0;
  let done = 0;
  let busyMs = 0;
  let since = 0;

  function settle(leaving: number, finished: number): void {
    const at = now();
    const elapsed = at - since;
    const kept = Math.exp(-elapsed / MEMORY_MS);
    busyMs = busyMs * kept + elapsed;
    done = done * kept + finished;
    since = at;
    inside -= leaving;
  }

  return {
    isOverloaded() {
      if (inside < LIMITS.workSampleMin || done === 0) return false;
      // What is under way says nothing here: a pause of the engine is no pace.
      if (inside * busyMs > LIMITS.workOverdueMsMax * done) return true;
      return (
        inside >= LIMITS.workAdmittedMin && inside * (busyMs + now() - since) > LIMITS.workWaitMsMax * done
      );
    },
    enter() {
      if (inside === 0) since = now();
      inside += 1;
    },
    leave: (count) => settle(count, count),
    giveUp: (count) => settle(count, 0),
  };
}
