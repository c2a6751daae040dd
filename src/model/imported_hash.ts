import { z } from 'zod';
import { CHECKABLE_HASHES, isCheckable, unpadded } from './password_hash.ts';

/**
 * A password hash as another program exports it; the result is the stored spelling (`isCheckable`). Reads argon2 and bcrypt with
 * the prefixes of Spring, Dovecot and Django, and PBKDF2 and scrypt as these, Auth0, Kratos and passlib write them
 * (docs/guides/import-and-export.md#hashes-of-passwords).
 */
export function passwordHash() {
  return z.string().check((payload) => {
    // Most lines of an import have the stored spelling.
    if (isCheckable(payload.value)) return;
    payload.value = storedSpelling(payload.value);
    if (isCheckable(payload.value)) return;
    payload.issues.push({ code: 'custom', message: `must be ${CHECKABLE_HASHES}`, input: payload.value });
  });
}

const BASE64 = '([A-Za-z0-9+/.]+)=*';
const pattern = (...parts: readonly string[]) => new RegExp(`^${parts.join('\\$')}$`);

/** Before a hash in PHC form: names of Spring and Dovecot in braces, and those of Django. */
const PREFIX =
  /^(?:\{(?:bcrypt|argon2(?:@SpringSecurity_v5_8)?|BLF-CRYPT|ARGON2ID?|CRYPT)\}|bcrypt\$|argon2(?=\$))/;

type Parts = readonly [string, string, string, string, string, string];

/** The spellings of other programs. */
const SPELLINGS: readonly (readonly [RegExp, (parts: Parts) => string])[] = [
  [
    pattern('', '(argon2id?)', 'v=19', '([mtp=\\d,]+)', BASE64, BASE64),
    ([kind, parameters, salt, key]) => {
      const { m, t, p } = named(parameters);
      return `$${kind}$v=19$m=${m},t=${t},p=${p}$${unpadded(bytes(salt))}$${unpadded(bytes(key))}`;
    },
  ],
  // Auth0 and Kratos; with the rounds alone, passlib, where the name without a digest means SHA-1.
  [
    pattern('', 'pbkdf2(?:-(sha1|sha256|sha512))?', '([il=\\d,]+)', BASE64, BASE64),
    ([digest = 'sha1', parameters, salt, key]) =>
      pbkdf2(digest, named(parameters).i ?? parameters, bytes(salt), bytes(key)),
  ],
  // Django: the salt is text.
  [
    pattern('pbkdf2_(sha1|sha256)', '(\\d+)', '([^$]+)', BASE64),
    ([digest, rounds, salt, key]) => pbkdf2(digest, rounds, Buffer.from(salt), bytes(key)),
  ],
  [
    pattern('scrypt', '(\\d+)', '([^$]+)', '(\\d+)', '(\\d+)', BASE64),
    ([n, salt, r, p, key]) =>
      scrypt([Math.log2(Number(n)), Number(r), Number(p)], Buffer.from(salt), bytes(key)),
  ],
  // Dovecot: the salt is text.
  [
    pattern('\\{PBKDF2\\}', '1', '([^$]+)', '(\\d+)', '([0-9a-f]+)'),
    ([salt, rounds, key]) => pbkdf2('sha1', rounds, Buffer.from(salt), Buffer.from(key, 'hex')),
  ],
  // Spring's defaults of 5.5 and 5.8: the salt, of 8 and 16 bytes, before the key.
  [
    /^\{pbkdf2\}([0-9a-f]{16})([0-9a-f]{64})$/,
    ([salt, key]) => pbkdf2('sha1', '185000', Buffer.from(salt, 'hex'), Buffer.from(key, 'hex')),
  ],
  [
    /^\{pbkdf2@SpringSecurity_v5_8\}([0-9a-f]{32})([0-9a-f]{64})$/,
    ([salt, key]) => pbkdf2('sha256', '310000', Buffer.from(salt, 'hex'), Buffer.from(key, 'hex')),
  ],
  // Spring: a number of the bytes log2 N, r and p.
  [
    pattern('\\{scrypt(?:@SpringSecurity_v5_8)?\\}', '([0-9a-f]{5,6})', BASE64, BASE64),
    ([parameters, salt, key]) => {
      const number = Number.parseInt(parameters, 16);
      return scrypt([number >> 16, (number >> 8) & 255, number & 255], bytes(salt), bytes(key));
    },
  ],
  // PHC; Kratos writes N where others write its logarithm.
  [
    pattern('', 'scrypt', '([lnrp=\\d,]+)', BASE64, BASE64),
    ([parameters, salt, key]) => {
      const { ln, r, p } = named(parameters);
      const log2N = Number(ln) < 64 ? Number(ln) : Math.log2(Number(ln));
      return scrypt([log2N, Number(r), Number(p)], bytes(salt), bytes(key));
    },
  ],
  // Firebase's scrypt as Supabase and Kratos write it, with separator and signer key of the project in each hash.
  [
    pattern('', 'fbscrypt', `v=1,n=(\\d+),r=(\\d+),p=1,ss=${BASE64},sk=${BASE64}`, BASE64, BASE64),
    ([n, r, separator, signerKey, salt, key]) =>
      scrypt([Number(n), Number(r), 1], joined(salt, separator), bytes(key), bytes(signerKey)),
  ],
  [
    pattern('', 'firescrypt', 'ln=(\\d+),r=(\\d+),p=1', BASE64, BASE64, BASE64, BASE64),
    ([n, r, salt, key, separator, signerKey]) =>
      scrypt([Number(n), Number(r), 1], joined(salt, separator), bytes(key), bytes(signerKey)),
  ],
];

/** The stored spelling of a hash; an unknown one stays as it is. */
function storedSpelling(value: string): string {
  const hash = value.replace(PREFIX, '');
  for (const [spelling, write] of SPELLINGS) {
    const parts = spelling.exec(hash);
    if (parts) return write(parts.slice(1) as unknown as Parts);
  }
  return hash;
}

/** `m=65536,t=3` as an object. */
const named = (parameters: string): Partial<Record<string, string>> =>
  Object.fromEntries(parameters.split(',').map((parameter) => parameter.split('=')));

/** Of base64, also that of passlib, which writes `.` for `+`. */
const bytes = (text: string) => Buffer.from(text.replaceAll('.', '+'), 'base64');

function pbkdf2(digest: string, rounds: string, salt: Uint8Array, key: Uint8Array): string {
  return `$pbkdf2-${digest}$i=${Number(rounds)},l=${key.length}$${unpadded(salt)}$${unpadded(key)}`;
}

function scrypt(
  [log2N, r, p]: readonly [number, number, number],
  salt: Uint8Array,
  key: Uint8Array,
  signerKey?: Uint8Array,
): string {
  const signer = signerKey ? `,k=${signerKeyId(signerKey)}` : '';
  return `$scrypt$ln=${log2N},r=${r},p=${p}${signer}$${unpadded(salt)}$${unpadded(key)}`;
}

const joined = (salt: string, separator: string) => Buffer.concat([bytes(salt), bytes(separator)]);

/** The ID by which a hash names the signer key of its Firebase project: 64 of the 256 bits of its digest. */
export const signerKeyId = (key: Uint8Array): string => Bun.SHA256.hash(key, 'hex').slice(0, 16);
