import { Fault } from '../../domain/fault.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** Something that waits, and until when somebody waits for it. */
export interface QueuedWork {
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Those for which somebody still waits; the others hear that it is too late. */
export function rejectExpired<W extends QueuedWork>(waiting: readonly W[]): readonly W[] {
  const now = performance.now();
  const late = waiting.filter(({ deadline }) => deadline < now);
  if (late.length === 0) return waiting;
  for (const { reject } of late) reject(new Fault('unavailable', [], new DatabaseError(ERROR_CODES.crowded)));
  return waiting.filter(({ deadline }) => deadline >= now);
}
