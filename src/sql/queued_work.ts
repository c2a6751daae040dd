import { Fault } from '../model/fault.ts';
import type { Work, WorkResult } from './transaction_work.ts';

/** Queued work and the time, as of `performance.now()`, until which its caller waits. */
export interface QueuedWork {
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Work that waits for a transaction. */
export interface Job extends QueuedWork {
  readonly work: () => Work<WorkResult<unknown>>;
  readonly resolve: (value: never) => void;
}

/** Rejects expired work with Fault `unavailable`, and returns the rest. */
export function rejectExpired<W extends QueuedWork>(waiting: readonly W[], cause: unknown): readonly W[] {
  const now = performance.now();
  const expired = waiting.filter(({ deadline }) => deadline < now);
  if (expired.length === 0) return waiting;
  for (const { reject } of expired) reject(new Fault('unavailable', [], cause));
  return waiting.filter(({ deadline }) => deadline >= now);
}
