import { Fault } from '../../model/fault.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** Queued work and the time, as of `performance.now()`, until which its caller waits. */
export interface QueuedWork {
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Rejects expired work and returns the rest. */
export function rejectExpired<W extends QueuedWork>(waiting: readonly W[]): readonly W[] {
  const now = performance.now();
  const expired = waiting.filter(({ deadline }) => deadline < now);
  if (expired.length === 0) return waiting;
  for (const { reject } of expired)
    reject(new Fault('unavailable', [], new DatabaseError(ERROR_CODES.connectionsBusy)));
  return waiting.filter(({ deadline }) => deadline >= now);
}
