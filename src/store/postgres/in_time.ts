import { Fault } from '../../domain/fault.ts';
import { OWN, Trouble } from './trouble.ts';

/** Something that waits, and until when somebody waits for it. */
export interface Waiting {
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Those for which somebody still waits; the others hear that it is too late. */
export function inTime<W extends Waiting>(waiting: readonly W[]): readonly W[] {
  const now = performance.now();
  const late = waiting.filter(({ deadline }) => deadline < now);
  if (late.length === 0) return waiting;
  for (const { reject } of late) reject(new Fault('unavailable', [], new Trouble(OWN.crowded)));
  return waiting.filter(({ deadline }) => deadline >= now);
}
