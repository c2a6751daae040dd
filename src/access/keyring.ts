import { createCipheriv, createDecipheriv, hkdfSync, timingSafeEqual } from 'node:crypto';
import { Refusal } from '../domain/fault.ts';
import { type Ambient, NIL_UUID } from '../domain/id.ts';
import type { AccessStore } from './port.ts';

/** What a ciphertext is for. Each purpose has a key of its own, derived from the master key. */
export type Purpose = 'signing-key' | 'oidc-client-secret' | 'key-check';

/** The one place a ciphertext belongs: it opens nowhere else. */
export interface Place {
  readonly table: string;
  readonly column: string;
  /** The nil UUID where the row belongs to no realm. */
  readonly realm: string;
  readonly id: string;
}

/**
 * Seals every secret that is stored. A ciphertext is version (1 byte), key identifier (8), nonce (12), AES-256-GCM
 * ciphertext, tag (16); its additional data are the first nine bytes and its place.
 */
export interface Keyring {
  /** Which master key this is, without telling anything about it. 16 hex digits. */
  readonly keyId: string;
  seal(purpose: Purpose, place: Place, plain: string): Uint8Array;
  /** Throws where the ciphertext was made under another key, for another place, or was changed. */
  open(purpose: Purpose, place: Place, sealed: Uint8Array): string;
}

export const MASTER_KEY_BYTES = 32;
const VERSION = 1;
const HEADER_BYTES = 9;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

function derive(master: Uint8Array, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `authrealm ${info}`, bytes));
}

export function openKeyring(master: Uint8Array, ambient: Pick<Ambient, 'randomBytes'>): Keyring {
  if (master.length !== MASTER_KEY_BYTES) throw new Error('a master key has 32 bytes');
  const keyId = derive(master, 'key identifier', 8);
  const header = Buffer.concat([Buffer.of(VERSION), keyId]);
  const keys = new Map<Purpose, Buffer>();
  const keyFor = (purpose: Purpose): Buffer => {
    const known = keys.get(purpose) ?? derive(master, `purpose ${purpose}`, 32);
    keys.set(purpose, known);
    return known;
  };
  const additional = ({ table, column, realm, id }: Place): Buffer =>
    Buffer.concat([header, Buffer.from(JSON.stringify([table, column, realm, id]))]);

  return {
    keyId: keyId.toString('hex'),
    seal(purpose, place, plain) {
      const nonce = ambient.randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', keyFor(purpose), nonce).setAAD(additional(place));
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return Buffer.concat([header, nonce, body, cipher.getAuthTag()]);
    },
    open(purpose, place, sealed) {
      const bytes = Buffer.from(sealed);
      if (
        bytes.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES ||
        !bytes.subarray(0, HEADER_BYTES).equals(header)
      ) {
        throw new Error('a ciphertext names another key');
      }
      const nonce = bytes.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', keyFor(purpose), nonce).setAAD(additional(place));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = bytes.subarray(HEADER_BYTES + NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
    },
  };
}

const CHECK_PLACE: Place = { table: 'keyring', column: 'sealed', realm: NIL_UUID, id: 'check' };
const CHECK_TEXT = 'authrealm';

/**
 * Makes sure that the database and the master key belong together: the first key leaves its proof, every other one
 * must open it. Throws Refusal for a stranger's key.
 */
export async function proveKeyring(keyring: Keyring, store: AccessStore, ambient: Ambient): Promise<void> {
  const check = { keyId: keyring.keyId, sealed: keyring.seal('key-check', CHECK_PLACE, CHECK_TEXT) };
  if ((await store.keyChecks()).length === 0) await store.insertKeyCheck(check, ambient.now());
  const proofs = await store.keyChecks();
  const opens = proofs.some(({ sealed }) => {
    try {
      const text = Buffer.from(keyring.open('key-check', CHECK_PLACE, sealed));
      return timingSafeEqual(text, Buffer.from(CHECK_TEXT));
    } catch {
      return false;
    }
  });
  if (opens) return;
  const names = proofs.map(({ keyId }) => keyId).join(', ');
  throw new Refusal(
    `the master key is not the one this database was made with: it is key ${keyring.keyId}, the database asks for ` +
      `${names}. Give the right one by AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY, or put its file back`,
  );
}
