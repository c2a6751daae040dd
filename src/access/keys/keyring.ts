import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { attempt } from '../../model/attempt.ts';
import { Refusal } from '../../model/fault.ts';
import { type Clock, NIL_UUID } from '../../model/id.ts';
import { pagesOf } from '../../model/pages.ts';
import { CIPHERTEXT_HEADER_BYTES, ciphertextKeyId } from '../../model/text/ciphertext.ts';
import type { AuthStore, KeyCheck } from '../store/access.ts';
import type { SealedStore, SealedValue, SecretLocation } from '../store/sealed.ts';

/** The purpose of a ciphertext. Each purpose has its own key, derived from the master key. */
export type Purpose =
  | 'signing-key'
  | 'oidc-client-secret'
  | 'key-check'
  | 'instance-secret'
  | 'webhook-secret'
  | 'oidc-flow'
  | 'oidc-code';

/** The purpose of a digest; each has its own key as well. */
export type DigestPurpose = 'idempotency-key' | 'request-body' | 'external-subject' | 'claim-right' | 'oidc';

/** Purposes by table; secrets in all other tables are members of a record. */
const PURPOSES: Readonly<Record<string, Purpose>> = {
  keyring: 'key-check',
  signing_key: 'signing-key',
  instance_secret: 'instance-secret',
  webhook: 'webhook-secret',
};

export function purposeOf({ table }: SecretLocation): Purpose {
  return PURPOSES[table] ?? 'oidc-client-secret';
}

export const MASTER_KEY_BYTES = 32;
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type Keyring = ReturnType<typeof openKeyring>;

/**
 * Encrypts every stored secret by the configured master keys. A sealed value is version (1 byte), key identifier (8), nonce (12),
 * AES-256-GCM ciphertext, tag (16); its additional authenticated data are the first nine bytes and its location. Each names its key,
 * so values sealed by the current and the previous key both decrypt while the master key is being changed.
 */
export function openKeyring(masters: readonly Uint8Array[], clock: Pick<Clock, 'randomBytes'>) {
  const keys = new Map(masters.map(deriveKeys).map((key) => [key.keyId, key]));
  const [first] = keys.values();
  if (!first) throw new Error('a keyring needs a master key');
  let active = first;
  return {
    /** Identifies the master key that seals without revealing it: 16 hex digits. */
    get keyId(): string {
      return active.keyId;
    },
    /** Encrypts a text, or the bytes that it encodes. */
    seal(purpose: Purpose, location: SecretLocation, plain: string, encoding: BufferEncoding = 'utf8') {
      const { header, keyFor } = active;
      const nonce = clock.randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', keyFor(purpose), nonce).setAAD(
        additional(header, location),
      );
      const body = Buffer.concat([cipher.update(plain, encoding), cipher.final()]);
      return Buffer.concat([header, nonce, body, cipher.getAuthTag()]);
    },
    /** Throws if the ciphertext belongs to another key or location, or was changed. */
    open(purpose: Purpose, location: SecretLocation, sealed: Uint8Array, encoding: BufferEncoding = 'utf8') {
      const { header, keyFor } = keys.get(ciphertextKeyId(sealed)) ?? active;
      const bytes = Buffer.from(sealed);
      if (
        bytes.length < CIPHERTEXT_HEADER_BYTES + NONCE_BYTES + TAG_BYTES ||
        !bytes.subarray(0, CIPHERTEXT_HEADER_BYTES).equals(header)
      ) {
        throw new Error('a ciphertext names another key');
      }
      const nonce = bytes.subarray(CIPHERTEXT_HEADER_BYTES, CIPHERTEXT_HEADER_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', keyFor(purpose), nonce).setAAD(
        additional(header, location),
      );
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = bytes.subarray(CIPHERTEXT_HEADER_BYTES + NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString(encoding);
    },
    /** HMAC-SHA-256 as base64url: recognises a text without storing it. */
    digest: (purpose: DigestPurpose, text: string): string =>
      createHmac('sha256', active.keyFor(purpose)).update(text).digest('base64url'),
    /** Seals from now on with the newest of these keys that is configured: those with a stored key check, newest last. */
    activateNewest(keyIds: readonly string[]): void {
      active = keyIds.flatMap((keyId) => keys.get(keyId) ?? []).at(-1) ?? active;
    },
  };
}

/** The keys of a master key, one for each purpose. */
function deriveKeys(master: Uint8Array) {
  if (master.length !== MASTER_KEY_BYTES) throw new Error('a master key has 32 bytes');
  const id = derive(master, 'key identifier', 8);
  const keys = new Map<Purpose | DigestPurpose, Buffer>();
  return {
    keyId: id.toString('hex'),
    header: Buffer.concat([Buffer.of(VERSION), id]),
    keyFor(purpose: Purpose | DigestPurpose): Buffer {
      const known = keys.get(purpose) ?? derive(master, `purpose ${purpose}`, 32);
      keys.set(purpose, known);
      return known;
    },
  };
}

function derive(master: Uint8Array, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `authrealm ${info}`, bytes));
}

function additional(header: Buffer, { table, column, realm, id }: SecretLocation): Buffer {
  return Buffer.concat([header, Buffer.from(JSON.stringify([table, column, realm, id]))]);
}

const CHECK_PLACE: SecretLocation = { table: 'keyring', column: 'sealed', realm: NIL_UUID, id: 'check' };

/** The key check value that ties a database to a master key: only that key decrypts it. */
export function keyCheckOf(keyring: Keyring): KeyCheck {
  return { keyId: keyring.keyId, sealed: keyring.seal('key-check', CHECK_PLACE, 'authrealm') };
}

export function opensKeyCheck(keyring: Keyring, { sealed }: KeyCheck): boolean {
  return opensValue(keyring, { location: CHECK_PLACE, sealed });
}

/** Throws Refusal unless the configured keys decrypt every key check of a database. */
export function assertOpensAll(keyring: Keyring, keyChecks: readonly KeyCheck[]): void {
  const unopened = keyChecks
    .filter((keyCheck) => !opensKeyCheck(keyring, keyCheck))
    .map(({ keyId }) => keyId);
  if (unopened.length === 0) return;
  if (unopened.length < keyChecks.length)
    throw new Refusal(
      `the master key is being changed, and key ${unopened.join(', ')} is also required: pass the new key with ` +
        '--master-key-file and the one before with --previous-master-key-file, and run "authrealm keys rewrap" with both until it completes',
    );
  throw new Refusal(
    `the master key does not match this database: key ${keyring.keyId} was given, and ${unopened.join(', ')} is required. ` +
      'Set AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY to the right key, or restore its file. To change the key, pass ' +
      'the present one with --previous-master-key-file',
  );
}

const SEALED_BATCH = 500;

/** Pages of the sealed values of a database; with `notBy`, only those of other keys. */
export function sealedPages({ values }: Pick<SealedStore, 'values'>, notBy?: string) {
  return pagesOf<SealedValue>((last) => values(notBy, last?.location, SEALED_BATCH));
}

/** Throws Refusal unless the configured keys decrypt every sealed value of a database without a key check. */
export async function assertOpensSealed(
  keyring: Keyring,
  sealed: Pick<SealedStore, 'values'>,
): Promise<void> {
  for await (const page of sealedPages(sealed)) {
    const unopened = page.find((value) => !opensValue(keyring, value));
    if (!unopened) continue;
    const { location, sealed: text } = unopened;
    throw new Refusal(
      `the proof of the master key is missing in this database, and key ${keyring.keyId} does not open its ${location.table} ` +
        `${location.id}, which key ${ciphertextKeyId(text)} sealed: set AUTHREALM_MASTER_KEY_FILE or AUTHREALM_MASTER_KEY to ` +
        'that key',
    );
  }
}

/**
 * Checks that the master key belongs to the database: a key stores its key check where there is none and it decrypts all
 * that is sealed, which is nothing at first; every later key must decrypt the check. While the master key is being changed
 * there are two key checks, and both keys are required. Throws Refusal for a wrong key.
 */
export async function assertKeyringMatches(
  keyring: Keyring,
  store: Pick<AuthStore, 'keyChecks' | 'insertKeyCheck'>,
  sealed: Pick<SealedStore, 'values'>,
  { now }: Pick<Clock, 'now'>,
): Promise<void> {
  if ((await store.keyChecks()).length === 0) {
    await assertOpensSealed(keyring, sealed);
    await store.insertKeyCheck(keyCheckOf(keyring), now());
  }
  const keyChecks = await store.keyChecks();
  assertOpensAll(keyring, keyChecks);
  keyring.activateNewest(keyChecks.map(({ keyId }) => keyId));
}

export function opensValue(keyring: Pick<Keyring, 'open'>, { location, sealed }: SealedValue): boolean {
  return attempt(() => keyring.open(purposeOf(location), location, sealed)) !== undefined;
}
