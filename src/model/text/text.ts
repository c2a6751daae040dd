import { z } from 'zod';
import { isLoopbackHost } from '../loopback.ts';

/**
 * Characters that no stored text has: control characters, including NUL, and lone surrogates. Texts are stored and
 * returned verbatim, never trimmed or normalised (docs/wire.md#text-values).
 */
export const NEVER_STORED = /[\p{Cc}\p{Cs}]/u;
const BLANK = /^\s*$/u;

/** A text of 1 to `max` code points. */
export function text(max: number) {
  return (
    z
      .string()
      // A text that is too long is not checked further: normalising it can take long.
      .refine((value) => isAtMost(value, max), { error: `must have at most ${max} characters`, abort: true })
      .refine((value) => !BLANK.test(value), { error: 'must not be blank' })
      .refine((value) => !NEVER_STORED.test(value), {
        error: 'must hold no control character and no lone surrogate',
      })
      .meta({ minLength: 1, maxLength: max })
  );
}

/** A text that `parse` accepts, and what it returns; `error` where that is undefined. */
export function parsedBy<T>(parse: (raw: string) => T | undefined, error: string) {
  return z.string().transform((raw, context): T => {
    const value = parse(raw);
    if (value === undefined) context.addIssue({ code: 'custom', message: error });
    return value ?? z.NEVER;
  });
}

/** Counts code points, and only if the number of UTF-16 units does not decide. */
function isAtMost(value: string, max: number): boolean {
  return value.length <= max || (value.length <= 2 * max && [...value].length <= max);
}

/** Without backslash, which is no character of a URL: parsers disagree on whether it ends the host. */
const HTTP_URL = /^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/;

/** An absolute http or https URL of at most `max` printable ASCII characters. */
export function httpUrl(max: number) {
  return z
    .string()
    .refine((value) => isHttpUrl(value, max), {
      error: `must be an absolute http or https URL of at most ${max} ASCII characters`,
    })
    .meta({ format: 'uri', minLength: 1, maxLength: max });
}

function isHttpUrl(value: string, max: number): boolean {
  return value.length <= max && HTTP_URL.test(value) && URL.canParse(value);
}

/**
 * The URL of an issuer, without userinfo, query or fragment (docs/wire.md#text-values). It is stored unchanged: issuers
 * are compared, never resolved or normalised.
 */
export function issuerUrl() {
  return httpUrl(1024).refine((value) => !/[?#]/.test(value) && !authority(value).includes('@'), {
    error: 'must have no userinfo, query or fragment',
  });
}

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1']);

/** A URL that browsers are redirected to: https, or http on this machine, without fragment (docs/wire.md#realms). */
export function redirectUri(max: number) {
  return z
    .string()
    .refine((value) => isHttpUrl(value, max) && isRedirectUri(new URL(value)), {
      error:
        'must be an absolute https URL, or http with the host localhost or 127.0.0.1, without fragment, of at most ' +
        `${max} ASCII characters`,
      // Well-formed but not permitted: 422, not 400 (docs/wire.md#errors).
      params: { isImpossible: true },
    })
    .meta({ format: 'uri', minLength: 1, maxLength: max });
}

function isRedirectUri({ protocol, hostname, href }: URL): boolean {
  return !href.includes('#') && (protocol === 'https:' || LOCAL_HOSTS.has(hostname));
}

/** Whether a request to this URL uses https or stays on this machine: plain answers can be forged. */
export function isSafeUrl(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null) return false;
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname));
}

function authority(url: string): string {
  return url.slice(url.indexOf('//') + 2).split('/', 1)[0] ?? '';
}
