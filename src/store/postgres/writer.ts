import type { IsOverloaded } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAdmission } from '../admission.ts';
import type { AuditLog } from '../audit/log.ts';
import type { WriterFigures } from '../engine.ts';
import type { WriteScope } from '../transactions.ts';
import type { Work, WorkResult } from '../work.ts';
import { type Job, openGroups } from './groups.ts';
import type { Pool } from './pool.ts';
import type { Perform } from './session.ts';

export interface Writer {
  /** Runs `work` in a transaction that it may share with what else waits; resolves after the commit is on disk. */
  write<T>(scene: WriteScope, work: () => Work<WorkResult<T>>): Promise<T>;
  figures(): WriterFigures;
  readonly isCrowded: IsOverloaded;
}

/** What is written in one scene waits for the commit before it and shares the next one. Scenes do not wait for others. */
export function openPostgresWriter(pool: Pool, perform: Perform, log: Pick<AuditLog, 'write'>): Writer {
  const counts = { commits: 0, busy: 0 };
  const commit = openGroups(pool, perform, log, counts);
  const lanes = new Map<string, Lane>();
  const gate = openAdmission();
  /** In all lanes, those under way included: a lane of its own makes nobody wait here, but for a connection. */
  let queued = 0;

  async function drain(name: string, scene: WriteScope, lane: Lane): Promise<void> {
    while (lane.jobs.length > 0) {
      const taken = lane.jobs.splice(0, LIMITS.writesGroupedMax);
      await commit(scene, taken);
      queued -= taken.length;
      lane.queued -= taken.length;
    }
    lanes.delete(name);
  }

  function isCrowded(realm: string | undefined): boolean {
    if (!gate.isOverloaded()) return false;
    const own = lanes.get(realm?.toLowerCase() ?? '')?.queued ?? 0;
    return realm === undefined || own * lanes.size >= queued;
  }

  return {
    write<T>(scene: WriteScope, work: () => Work<WorkResult<T>>): Promise<T> {
      if (queued >= LIMITS.writesQueuedMax) return Promise.reject(new Fault('unavailable'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      queued += 1;
      gate.enter();
      // Registered first: the gate knows before the caller does.
      promise.then(
        () => gate.leave(1),
        () => gate.giveUp(1),
      );
      const job: Job = { work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax };
      const name = laneNameOf(scene);
      const waiting = lanes.get(name);
      if (waiting) {
        waiting.jobs.push(job);
        waiting.queued += 1;
      } else {
        const lane = { jobs: [job], queued: 1 };
        lanes.set(name, lane);
        drain(name, scene, lane);
      }
      return promise;
    },
    figures: () => ({ writesWaiting: queued, ...counts }),
    isCrowded,
  };
}

/** What is written in one scene. */
interface Lane {
  /** What waits for the next commit. */
  readonly jobs: Job[];
  /** That, and what is being committed. */
  queued: number;
}

function laneNameOf(scene: WriteScope): string {
  return scene === 'instance' ? scene : [...scene].sort().join();
}
