import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { type Clock, NIL_UUID, type Uuid } from '../model/id.ts';

/** The user whose personal values are encrypted. */
export interface Person {
  readonly realm: Uuid;
  readonly user: Uuid;
}

export const LOG_SECRET_BYTES = 32;
const USER_KEY_BYTES = 16;
const NONCE_BYTES = 12;
/** Of a ciphertext (AES-GCM), and of an entry. */
const TAG_BYTES = 16;
/** An Ed25519 private key in PKCS#8 is this, then its 32 bytes (RFC 8410, 7). */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

export type LogKeys = ReturnType<typeof openLogKeys>;

/**
 * The keys of the audit log. All are derived from one secret of the installation, which the master key seals:
 * access to the database alone does not yield them.
 */
export function openLogKeys(secret: Uint8Array, { randomBytes }: Pick<Clock, 'randomBytes'>) {
  const derive = (info: string) => Buffer.from(hkdfSync('sha256', secret, '', `authrealm log ${info}`, 32));
  const chainKey = derive('chain');
  const anchorKey = derive('anchor');
  const rowKey = derive('row');
  const signInKey = derive('sign-in');
  const encryptionKey = openEncryptionKeys(derive('person'));
  const signer = createPrivateKey({
    key: Buffer.concat([PKCS8_ED25519, derive('checkpoint')]),
    format: 'der',
    type: 'pkcs8',
  });
  const verifier: KeyObject = createPublicKey(signer);
  return {
    /**
     * Generates the stored random value from which the encryption key of a user is derived. Deleting it makes
     * the personal values of that user unreadable.
     */
    mintUserKey: (): Uint8Array => randomBytes(USER_KEY_BYTES),
    /** Encrypts the personal values of an entry: nonce (12 bytes), AES-256-GCM ciphertext, tag (16). */
    encrypt(userKey: Uint8Array, person: Person, plain: Uint8Array): Uint8Array {
      const nonce = randomBytes(NONCE_BYTES);
      const { key, id } = encryptionKey(userKey, person);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(id);
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    /** Throws if it was encrypted for another user or with another key, or was changed. */
    decrypt(userKey: Uint8Array, person: Person, encrypted: Uint8Array): Uint8Array {
      const bytes = Buffer.from(encrypted);
      if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error('an encrypted entry is cut short');
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const { key, id } = encryptionKey(userKey, person);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(id);
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([body, decipher.final()]);
    },
    /** The first 16 bytes of HMAC-SHA-256 over the previous tag and the entry. */
    tag: (previous: Uint8Array, entry: string): Uint8Array =>
      hmac(chainKey, previous, entry).subarray(0, TAG_BYTES),
    /** HMAC-SHA-256 over the start of a chain. 32 bytes. */
    anchor: (place: string): Uint8Array => hmac(anchorKey, place),
    /** The first 16 bytes of HMAC-SHA-256 over the values of a row that grants access. */
    rowMac: (row: string): Uint8Array => hmac(rowKey, row).subarray(0, TAG_BYTES),
    /** HMAC-SHA-256 for device tokens, and for the digests of names and networks in budgets. 32 bytes. */
    signInMac: (text: string): Uint8Array => hmac(signInKey, text),
    /** An Ed25519 signature over a checkpoint line, as base64url. */
    sign: (line: string): string => sign(null, Buffer.from(line), signer).toString('base64url'),
    isSigned: (line: string, signature: string): boolean =>
      verify(null, Buffer.from(line), verifier, Buffer.from(signature, 'base64url')),
    /**
     * The Ed25519 public key that verifies these signatures, for use elsewhere: 32 bytes, base64. In SPKI the key is at the end (RFC
     * 8410, 4).
     */
    publicKey: verifier.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64'),
  };
}

/** HMAC-SHA-256 over these parts. Bun.CryptoHasher takes half as long as `createHmac`. */
function hmac(key: Uint8Array, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const hash = new Bun.CryptoHasher('sha256', key);
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** The key of a user, and the ID that every ciphertext of the user is bound to. */
interface EncryptionKey {
  readonly key: Buffer;
  readonly id: Buffer;
}

/**
 * The encryption keys of users. The last one is cached, because a user and its links are often written in
 * sequence.
 */
function openEncryptionKeys(secret: Uint8Array): (userKey: Uint8Array, person: Person) => EncryptionKey {
  let last: (EncryptionKey & Person & { readonly userKey: Uint8Array }) | undefined;
  return (userKey, { realm, user }) => {
    const isLast = last?.user === user && last.realm === realm;
    if (last && isLast && Buffer.compare(last.userKey, userKey) === 0) return last;
    const id = Buffer.from(`${realm} ${user}`);
    last = { userKey, realm, user, key: hmac(secret, userKey, id), id };
    return last;
  };
}

/** The member of `detail` with the encrypted personal values of an installation entry. */
export const PERSON_MEMBER = 'person';

/** Entries of the installation belong to no realm and no user. */
const INSTALLATION_PERSON = { realm: NIL_UUID, user: NIL_UUID };

/** Encrypts personal values of an installation entry: base64url of key and ciphertext. */
export function sealPerson(keys: Pick<LogKeys, 'mintUserKey' | 'encrypt'>, values: object): string {
  const userKey = keys.mintUserKey();
  const plain = Buffer.from(JSON.stringify(values));
  return Buffer.concat([userKey, keys.encrypt(userKey, INSTALLATION_PERSON, plain)]).toString('base64url');
}

/** Decrypts it. Throws if it was changed. */
export function openPerson(keys: Pick<LogKeys, 'decrypt'>, sealed: string): object {
  const bytes = Buffer.from(sealed, 'base64url');
  const [userKey, encrypted] = [bytes.subarray(0, USER_KEY_BYTES), bytes.subarray(USER_KEY_BYTES)];
  const plain = keys.decrypt(userKey, INSTALLATION_PERSON, encrypted);
  return JSON.parse(Buffer.from(plain).toString());
}
