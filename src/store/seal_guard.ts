import type { Memory, Write } from '../directory/store.ts';
import { keyIdOf } from '../domain/ciphertext.ts';
import { Fault } from '../domain/fault.ts';
import { RESOURCES } from '../domain/resources.ts';
import { sealedMembers } from './sealed_columns.ts';
import { writtenOf } from './verdicts.ts';
import { first, type Work } from './work.ts';

const MEMBERS = new Map(RESOURCES.map((resource) => [resource, sealedMembers(resource)]));

// A database without any proof was given no master key yet, and cannot say.
const IS_PROVEN = `select 1 where not exists (select 1 from keyring)
  or exists (select 1 from keyring where key_id = ?)`;

/**
 * Refuses, inside the transaction of a write, a secret that was sealed by a key without proof: a process that missed
 * the end of a change of the master key would store what nobody opens.
 */
function* prove(sealed: unknown): Work<void> {
  if (sealed instanceof Uint8Array && !(yield* first(IS_PROVEN, keyIdOf(sealed)))) {
    throw new Fault('unavailable', [], new Error('the master key was changed while this ran'));
  }
}

/** What is looked at before it is stored. */
export interface SealGuard {
  ofWrite(write: Write): Work<void>;
  ofMemory(memory: Memory): Work<void>;
}

export const SEAL_GUARD: SealGuard = {
  *ofWrite(write) {
    for (const name of MEMBERS.get(write.resource) ?? []) yield* prove(writtenOf(write, name));
  },
  ofMemory: ({ sealed }) => prove(sealed),
};
