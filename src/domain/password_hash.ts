import { z } from 'zod';

/** What a hash may cost to check, so that no stored hash can hold the service up. */
const ARGON2_MEMORY_KIB_MAX = 262_144;
const ARGON2_PASSES_MAX = 10;
const ARGON2_LANES_MAX = 8;
const BCRYPT_COST_MIN = 4;
const BCRYPT_COST_MAX = 14;

const ARGON2 =
  /^\$argon2(?:i|id)\$v=19\$m=([1-9]\d{0,5}),t=([1-9]\d?),p=([1-9])\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** A password hash as it may be brought along: argon2i or argon2id of version 19, or bcrypt, in PHC form. */
export function passwordHash() {
  return z.string().refine((value) => isArgon2(value) || isBcrypt(value), {
    error:
      `must be argon2i or argon2id (v=19, m at most ${ARGON2_MEMORY_KIB_MAX}, t at most ${ARGON2_PASSES_MAX}, ` +
      `p at most ${ARGON2_LANES_MAX}) or bcrypt (cost ${BCRYPT_COST_MIN} to ${BCRYPT_COST_MAX}) in PHC form`,
  });
}

function isArgon2(value: string): boolean {
  const parts = ARGON2.exec(value);
  if (!parts) return false;
  const [memory, passes, lanes] = parts.slice(1, 4).map(Number) as [number, number, number];
  return (
    lanes <= ARGON2_LANES_MAX &&
    passes <= ARGON2_PASSES_MAX &&
    // Less than eight blocks a lane is no argon2 (RFC 9106, 3.1).
    memory >= 8 * lanes &&
    memory <= ARGON2_MEMORY_KIB_MAX &&
    isBase64(parts[4] ?? '', { min: 8, max: 64 }) &&
    isBase64(parts[5] ?? '', { min: 12, max: 64 })
  );
}

/** Unpadded base64 of so many bytes, spelled the one canonical way. */
function isBase64(text: string, bytes: { readonly min: number; readonly max: number }): boolean {
  const decoded = Buffer.from(text, 'base64');
  if (decoded.length < bytes.min || decoded.length > bytes.max) return false;
  return decoded.toString('base64').replace(/=+$/, '') === text;
}

function isBcrypt(value: string): boolean {
  const cost = Number(BCRYPT.exec(value)?.[1]);
  return cost >= BCRYPT_COST_MIN && cost <= BCRYPT_COST_MAX;
}
