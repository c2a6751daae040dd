import { parseRate, type Rate } from '../../model/token_buckets.ts';

/** Parsers of the values of settings. Each returns undefined for an invalid value. */

export function integer(min: number, max: number) {
  return {
    parse(raw: string): number | undefined {
      const value = /^\d{1,9}$/.test(raw) ? Number(raw) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
    expects: `a number from ${min} to ${max}`,
  };
}

export function choice<const V extends string>(...words: readonly V[]) {
  return {
    value: words.join('|'),
    parse: (raw: string): V | undefined => words.find((word) => word === raw),
    expects: `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`,
  };
}

/** A switch. */
export const isTrue = (raw: string): boolean | undefined => SWITCHES.get(raw);

const SWITCHES = new Map(Object.entries({ true: true, 1: true, false: false, 0: false }));

/** A list of values, separated by spaces or commas; may be empty. */
export function listOf<V>(parse: (raw: string) => V | undefined): (raw: string) => readonly V[] | undefined {
  return (raw) => {
    const values = raw
      .split(/[\s,]+/)
      .filter(Boolean)
      .map(parse);
    return values.every((value) => value !== undefined) ? (values as V[]) : undefined;
  };
}

/** A rate, or `off`. */
export function parseRateOrOff(raw: string): Rate | 'off' | undefined {
  return raw === 'off' ? raw : parseRate(raw);
}

/** Any text but the empty one. */
export const isNotEmpty = (raw: string): string | undefined => (raw === '' ? undefined : raw);

/** A TCP port; 0 chooses a free one. */
export const port = integer(0, 65_535);

/** HOST:PORT, an IPv6 address in brackets. */
export function parseListenAddress(raw: string) {
  const [, bracketed, plain, digits = ''] = /^(?:\[([\da-f:.]+)\]|([^\s:[\]]+)):(\d+)$/i.exec(raw) ?? [];
  const host = bracketed ?? plain;
  const number = port.parse(digits);
  return host === undefined || number === undefined ? undefined : { host, port: number };
}

/** Segments that routers and proxies do not decode or normalise. */
const PLAIN_PATH = /^(\/[A-Za-z0-9._~-]+)*$/;

/** An absolute http(s) URL without query, fragment or userinfo; returned without its final slash. */
export function parseBaseUrl(raw: string): string | undefined {
  const url = URL.parse(raw);
  if (!url || !/^https?:$/.test(url.protocol) || /[?#]/.test(raw) || url.username || url.password)
    return undefined;
  const path = url.pathname.replace(/\/$/, '');
  return PLAIN_PATH.test(path) ? `${url.origin}${path}` : undefined;
}

/** An origin in the form that browsers send. */
export function parseOrigin(raw: string): string | undefined {
  return URL.parse(raw)?.origin === raw ? raw : undefined;
}
