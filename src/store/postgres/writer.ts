import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Scene } from '../transactions.ts';
import type { Outcome, Work } from '../work.ts';
import { type Job, openGroups } from './groups.ts';
import type { Pool } from './pool.ts';
import type { Perform } from './session.ts';

export interface Writer {
  /** Runs `work` in a transaction that it may share with what else waits; resolves after the commit is on disk. */
  write<T>(scene: Scene, work: () => Work<Outcome<T>>): Promise<T>;
}

/** What is written in one scene waits for the commit before it and shares the next one. Scenes do not wait for others. */
export function openWriter(pool: Pool, perform: Perform): Writer {
  const commit = openGroups(pool, perform);
  const lanes = new Map<string, Job[]>();
  /** In all lanes, those under way included: a lane of its own makes nobody wait here, but for a connection. */
  let queued = 0;

  async function drain(name: string, scene: Scene, jobs: Job[]): Promise<void> {
    while (jobs.length > 0) {
      const taken = jobs.splice(0, LIMITS.writesGroupedMax);
      await commit(scene, taken);
      queued -= taken.length;
    }
    lanes.delete(name);
  }

  return {
    write<T>(scene: Scene, work: () => Work<Outcome<T>>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (queued >= LIMITS.writesQueuedMax) return reject(new Fault('unavailable'));
        queued += 1;
        const job: Job = { work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax };
        const name = nameOf(scene);
        const waiting = lanes.get(name);
        if (waiting) {
          waiting.push(job);
          return;
        }
        const lane = [job];
        lanes.set(name, lane);
        drain(name, scene, lane);
      });
    },
  };
}

function nameOf(scene: Scene): string {
  return scene === 'instance' ? scene : [...scene].sort().join();
}
