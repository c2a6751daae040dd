import type { PasswordCost } from './password.ts';

/** A hash that this program made. */
export interface MadeHash {
  /** In PHC form. */
  readonly hash: string;
  /** Made from the text after NFKC. How an imported hash was made is not known. */
  readonly isNormalised: true;
}

/** Memory times passes of the costliest hash: about half a second of CPU time, of the two seconds that a hash may take. */
const KIB_HASHED_MAX = 524_288;
/** A check needs this memory once. */
const ARGON2_MEMORY_KIB_MAX = 262_144;
const ARGON2_LANES_MAX = 8;
/** Passes times lanes: each starts a thread four times, whatever the memory is. */
const ARGON2_LANE_PASSES_MAX = 1_024;
const BCRYPT_COST_MIN = 4;
const BCRYPT_COST_MAX = 12;

/** SHA-1 and SHA-256, times the blocks of the key. A round of SHA-512 takes as long as two and a half of them. */
const PBKDF2_ROUNDS_MAX = 1_500_000;
const PBKDF2_SHA512_ROUNDS_MAX = 600_000;
/** N times r times p: 128 bytes of memory each for one lane. */
const SCRYPT_BLOCKS_MAX = 2 ** 20;

const BASE64 = '([A-Za-z0-9+/]+)';
const ARGON2 = new RegExp(
  `^\\$(argon2(?:i|id))\\$v=19\\$m=([1-9]\\d{0,5}),t=([1-9]\\d{0,4}),p=([1-9])\\$${BASE64}\\$${BASE64}$`,
);
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const PBKDF2 = new RegExp(
  `^\\$pbkdf2-(sha1|sha256|sha512)\\$i=([1-9]\\d{0,6}),l=([1-9]\\d?)\\$${BASE64}\\$${BASE64}$`,
);
const SCRYPT = new RegExp(
  `^\\$scrypt\\$ln=([1-9]\\d?),r=([1-9]\\d{0,2}),p=([1-9]\\d{0,2})(?:,k=([0-9a-f]{16}))?\\$${BASE64}\\$${BASE64}$`,
);

/** What `isCheckable` accepts. */
export const CHECKABLE_HASHES =
  `argon2i or argon2id (v=19, m at most ${ARGON2_MEMORY_KIB_MAX}, m times t at most ${KIB_HASHED_MAX}, ` +
  `p at most ${ARGON2_LANES_MAX}, t times p at most ${ARGON2_LANE_PASSES_MAX}), bcrypt (cost ${BCRYPT_COST_MIN} to ${BCRYPT_COST_MAX}), PBKDF2 (rounds times blocks of the key at ` +
  `most ${PBKDF2_ROUNDS_MAX}, of SHA-512 ${PBKDF2_SHA512_ROUNDS_MAX}) or scrypt (N times r times p at most ${SCRYPT_BLOCKS_MAX})`;

/** Whether passwords may be checked with a stored hash: other ones count as none. */
export function isCheckable(hash: string): boolean {
  return isArgon2(hash) || isBcrypt(hash) || readDerivedKey(hash) !== undefined;
}

function isArgon2(value: string): boolean {
  const parts = ARGON2.exec(value);
  if (!parts) return false;
  const [memory, passes, lanes] = parts.slice(2, 5).map(Number) as [number, number, number];
  return (
    lanes <= ARGON2_LANES_MAX &&
    passes * lanes <= ARGON2_LANE_PASSES_MAX &&
    memory * passes <= KIB_HASHED_MAX &&
    // Argon2 needs eight blocks a lane (RFC 9106, 3.1).
    memory >= 8 * lanes &&
    memory <= ARGON2_MEMORY_KIB_MAX &&
    base64Bytes(parts[5], { min: 8, max: 64 }) !== undefined &&
    base64Bytes(parts[6], { min: 12, max: 64 }) !== undefined
  );
}

/** The bytes of unpadded base64 in its canonical spelling; undefined if there are fewer or more. */
function base64Bytes(
  text: string | undefined,
  { min, max }: { readonly min: number; readonly max: number },
): Buffer | undefined {
  const decoded = Buffer.from(text ?? '', 'base64');
  const isSized = decoded.length >= min && decoded.length <= max;
  return isSized && unpadded(decoded) === text ? decoded : undefined;
}

/** Base64 without padding, as in hashes. */
export const unpadded = (bytes: Uint8Array): string =>
  Buffer.from(bytes).toString('base64').replace(/=+$/, '');

export function isBcrypt(value: string): boolean {
  const cost = Number(BCRYPT.exec(value)?.[1]);
  return cost >= BCRYPT_COST_MIN && cost <= BCRYPT_COST_MAX;
}

/** A PBKDF2 (RFC 8018) or scrypt (RFC 7914) hash: a key that is derived from a password. */
export type DerivedKey = Pbkdf2Key | ScryptKey;
interface Pbkdf2Key {
  readonly digest: Pbkdf2Digest;
  readonly rounds: number;
  readonly salt: Buffer;
  readonly key: Buffer;
}
interface ScryptKey {
  readonly N: number;
  readonly r: number;
  readonly p: number;
  /** Of Firebase: `key` is the signer key of this ID, encrypted by the derived key (src/access/keys/signer_keys.ts). */
  readonly signerKeyId: string | undefined;
  readonly salt: Buffer;
  readonly key: Buffer;
}
type Pbkdf2Digest = 'sha1' | 'sha256' | 'sha512';

const DIGEST_BYTES: Readonly<Record<Pbkdf2Digest, number>> = { sha1: 20, sha256: 32, sha512: 64 };
const SALT_BYTES = { min: 1, max: 128 };
const KEY_BYTES = { min: 16, max: 64 };

/** The parts of a stored PBKDF2 or scrypt hash; undefined for other ones, and for one that costs more than a check may. */
export function readDerivedKey(hash: string): DerivedKey | undefined {
  return readPbkdf2(hash) ?? readScrypt(hash);
}

function readPbkdf2(hash: string): Pbkdf2Key | undefined {
  const [, digest, rounds, length, ...texts] = PBKDF2.exec(hash) ?? [];
  const [salt, key] = [base64Bytes(texts[0], SALT_BYTES), base64Bytes(texts[1], KEY_BYTES)];
  if (!salt || !key || key.length !== Number(length)) return undefined;
  const read = { digest: digest as Pbkdf2Digest, rounds: Number(rounds), salt, key };
  const roundsMax = read.digest === 'sha512' ? PBKDF2_SHA512_ROUNDS_MAX : PBKDF2_ROUNDS_MAX;
  const blocks = Math.ceil(key.length / DIGEST_BYTES[read.digest]);
  return read.rounds * blocks <= roundsMax ? read : undefined;
}

function readScrypt(hash: string): ScryptKey | undefined {
  const [, log2N, r, p, signerKeyId, ...texts] = SCRYPT.exec(hash) ?? [];
  const [salt, key] = [base64Bytes(texts[0], SALT_BYTES), base64Bytes(texts[1], KEY_BYTES)];
  if (!salt || !key) return undefined;
  const read = { N: 2 ** Number(log2N), r: Number(r), p: Number(p), signerKeyId, salt, key };
  // N is less than 2 to the power of 16 r (RFC 7914, 6).
  const isDefined = Number(log2N) < 16 * read.r;
  return isDefined && read.N * read.r * read.p <= SCRYPT_BLOCKS_MAX ? read : undefined;
}

/** Whether a new hash with this cost would be better: the hash is not argon2id, or fills less memory in all its passes. */
export function isWeaker(hash: string, { memoryKib, passes }: PasswordCost): boolean {
  const [, algorithm, memory, ownPasses] = ARGON2.exec(hash) ?? [];
  return algorithm !== 'argon2id' || Number(memory) * Number(ownPasses) < memoryKib * passes;
}

/** A password to compare with a hash that `isCheckable` accepts. */
export interface CheckRequest {
  readonly hash: string;
  readonly password: string;
  /** The hash was made from the text after NFKC. */
  readonly isNormalised: boolean;
  /** The signer key that a hash of Firebase names, in base64. */
  readonly signerKey?: string | undefined;
}

/** The result of comparing a password with a hash. */
export interface PasswordCheck {
  readonly isRight: boolean;
  /** Only the first 72 bytes of a longer password were compared: the program that made the hash read no more. */
  readonly isCut: boolean;
}

/** The beginning of a hash up to its salt: two hashes with the same one take the same time. */
export type HashKind = string;

export function hashKind(hash: string): HashKind {
  if (hash.startsWith('$2')) return hash.slice(0, '$2b$10$'.length);
  return hash.slice(0, hash.lastIndexOf('$', hash.lastIndexOf('$') - 1) + 1);
}

/** A hash of a kind that no password has: to take the time of a check where there is nothing to compare with. */
export function decoyHash(kind: HashKind): string {
  if (kind.startsWith('$2')) return kind + '.'.repeat(53);
  const keyBytes = Number(/,l=(\d+)\$$/.exec(kind)?.[1] ?? 32);
  return `${kind}${'A'.repeat(22)}$${unpadded(Buffer.alloc(keyBytes))}`;
}

/** The kind of new hashes. */
export function newHashKind({ memoryKib, passes }: PasswordCost): HashKind {
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$`;
}
