import { z } from 'zod';
import { isLoopbackHost } from '../loopback.ts';

/**
 * What a stored text may not hold (contract 8, row 41): control characters, NUL included, and lone surrogates.
 * The rest is stored and answered verbatim: never trimmed, never normalised.
 */
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u;
const BLANK = /^\s*$/u;

/** A text of 1 to `max` code points. */
export function text(max: number) {
  return (
    z
      .string()
      // What is too long is not looked at any further: some of it takes long to normalise.
      .refine((value) => isAtMost(value, max), { error: `must have at most ${max} characters`, abort: true })
      .refine((value) => !BLANK.test(value), { error: 'must not be blank' })
      .refine((value) => !FORBIDDEN.test(value), {
        error: 'must hold no control character and no lone surrogate',
      })
      .meta({ minLength: 1, maxLength: max })
  );
}

/** Length is counted in code points; the count is taken only where UTF-16 units leave it open. */
function isAtMost(value: string, max: number): boolean {
  return value.length <= max || (value.length <= 2 * max && [...value].length <= max);
}

/** Without the backslash, which is no character of a URL: parsers disagree on where it ends the host. */
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
 * The URL of an issuer, without userinfo, query or fragment (contract 8, row 41). It is kept letter for letter:
 * issuers are compared, never resolved or normalised.
 */
export function issuerUrl() {
  return httpUrl(1024).refine((value) => !/[?#]/.test(value) && !authority(value).includes('@'), {
    error: 'must have no userinfo, query or fragment',
  });
}

/** A well-formed address that is refused for what it is: 422, not 400 (contract 8, row 14). */
export const UNPROCESSABLE = Object.freeze({ isImpossible: true });

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1']);

/** Where a browser is sent back to: https, or http on this machine, and no fragment (contract 8, row 35). */
export function redirectUri(max: number) {
  return z
    .string()
    .refine((value) => isHttpUrl(value, max) && isRedirectUri(new URL(value)), {
      error:
        'must be an absolute https URL, or http with the host localhost or 127.0.0.1, without fragment, of at most ' +
        `${max} ASCII characters`,
      params: UNPROCESSABLE,
    })
    .meta({ format: 'uri', minLength: 1, maxLength: max });
}

function isRedirectUri({ protocol, hostname, href }: URL): boolean {
  return !href.includes('#') && (protocol === 'https:' || LOCAL_HOSTS.has(hostname));
}

/** Whether what is asked there goes by https, or stays on this machine: what came in clear could be anybody's. */
export function isSafeUrl(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null) return false;
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname));
}

function authority(url: string): string {
  return url.slice(url.indexOf('//') + 2).split('/', 1)[0] ?? '';
}
