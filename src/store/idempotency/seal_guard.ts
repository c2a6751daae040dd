import type { IdempotencyRecord } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { keyIdOf } from '../../domain/text/ciphertext.ts';
import { ANY_CHECK, IS_PROVEN } from '../auth/access.ts';
import type { Dialect } from '../dialect.ts';
import { type PendingWrite, writtenValue } from '../records/verdicts.ts';
import { first, type Work } from '../work.ts';
import { sealedMembers } from './sealed_columns.ts';

const MEMBERS = new Map(RESOURCES.map((resource) => [resource, sealedMembers(resource)]));

/** Refuses secrets that were sealed by a key of another time, before they are stored. */
export interface SealGuard {
  checkSealKey(writing: PendingWrite): Work<undefined>;
  checkRecord(memory: IdempotencyRecord): Work<void>;
}

export function openSealGuard({ claims }: Pick<Dialect, 'claims'>): SealGuard {
  // Whoever takes a proof away waits for those who store what was sealed under it.
  const isProven = `${IS_PROVEN}${claims.together}`;

  /**
   * Refuses, inside the transaction of a write, a secret that was sealed by a key without proof: a process that missed
   * the end of a change of the master key would store what nobody opens.
   */
  function* assertKeyIsProven(sealed: unknown): Work<void> {
    if (!(sealed instanceof Uint8Array) || (yield* first(isProven, keyIdOf(sealed)))) return;
    // A database without any proof was given no master key yet, and cannot say.
    if (yield* first(ANY_CHECK)) {
      throw new Fault('unavailable', [], new Error('the master key was changed while this ran'));
    }
  }

  return {
    *checkSealKey({ write }) {
      for (const name of MEMBERS.get(write.resource) ?? [])
        yield* assertKeyIsProven(writtenValue(write, name));
      return undefined;
    },
    checkRecord: ({ sealed }) => assertKeyIsProven(sealed),
  };
}
