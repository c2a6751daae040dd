import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { openAdmission } from '../admission.ts';
import type { Job } from '../queued_work.ts';
import type { Work, WorkResult } from '../transaction_work.ts';
import type { WriteScope } from '../transactions.ts';
import type { GroupCommit } from './group_commit.ts';

/** Writes of one scope wait for the commit before theirs and share the next one. Scopes do not wait for each other. */
export function openPostgresWriter({ commit, counts }: GroupCommit) {
  const queues = new Map<string, ScopeQueue>();
  const admission = openAdmission();
  /** Jobs in all queues, including those being committed. Queues run concurrently, and share the connections. */
  let queued = 0;

  async function drain(name: string, scope: WriteScope, queue: ScopeQueue): Promise<void> {
    while (queue.jobs.length > 0) {
      const group = queue.jobs.splice(0, LIMITS.writesGroupedMax);
      await commit(scope, group);
      queued -= group.length;
      queue.queued -= group.length;
    }
    queues.delete(name);
  }

  return {
    write<T>(scope: WriteScope, work: () => Work<WorkResult<T>>): Promise<T> {
      if (queued >= LIMITS.writesQueuedMax) return Promise.reject(new Fault('unavailable'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      queued += 1;
      admission.enter();
      // Registered before the caller can await: admission control learns of the end first.
      promise.then(
        () => admission.leave(1),
        () => admission.giveUp(1),
      );
      const job: Job = { work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax };
      const name = scopeName(scope);
      const waiting = queues.get(name);
      if (waiting) {
        waiting.jobs.push(job);
        waiting.queued += 1;
      } else {
        const queue = { jobs: [job], queued: 1 };
        queues.set(name, queue);
        drain(name, scope, queue);
      }
      return promise;
    },
    isOverloaded(realm: string | undefined): boolean {
      if (!admission.isOverloaded()) return false;
      const own = queues.get(realm?.toLowerCase() ?? '')?.queued ?? 0;
      return realm === undefined || own * queues.size >= queued;
    },
    figures: () => ({ writesWaiting: queued, ...counts }),
  };
}

/** The jobs of one scope. */
interface ScopeQueue {
  /** Jobs that wait for the next commit. */
  readonly jobs: Job[];
  /** Waiting jobs and those being committed. */
  queued: number;
}

function scopeName(scope: WriteScope): string {
  return scope === 'instance' ? scope : [...scope].sort().join();
}
