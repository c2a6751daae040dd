import { NIL_UUID } from '../domain/id.ts';
import type { LogKeys } from './log_keys.ts';

/** The member of an act's detail that tells of a person, and what it tells. */
export const PERSON = 'person';

/** Acts belong to no realm, and whom they tell of is no user of one. */
const NOBODYS = { realm: NIL_UUID, user: NIL_UUID };
const SALT_BYTES = 32;

/** What an act tells about a person, so that who has the database alone does not read it: base64url of salt and ciphertext. */
export function sealPerson(keys: Pick<LogKeys, 'mintSalt' | 'encrypt'>, told: object): string {
  const salt = keys.mintSalt();
  return Buffer.concat([salt, keys.encrypt(salt, NOBODYS, JSON.stringify(told))]).toString('base64url');
}

/** Reads it again. Throws where it was changed. */
export function openPerson(keys: Pick<LogKeys, 'decrypt'>, sealed: string): object {
  const bytes = Buffer.from(sealed, 'base64url');
  return JSON.parse(keys.decrypt(bytes.subarray(0, SALT_BYTES), NOBODYS, bytes.subarray(SALT_BYTES)));
}
