import { promises as dns } from 'node:dns';
import { type CheckedAddress, familyOf, isLoopback, isPublic } from './addresses.ts';

/** The target of a URL, parsed but not resolved. */
export interface OutboundTarget {
  readonly isTls: boolean;
  /** A name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The `Host` header: host, and the port unless it is the default port of the scheme. */
  readonly authority: string;
  readonly path: string;
  /** Whether this target may have an address. */
  readonly isAllowed: (address: string) => boolean;
}

export interface TargetRules {
  /** Also allows http and https to 127.0.0.0/8, ::1 and `localhost`, at any port. */
  readonly allowLoopback?: boolean;
  /** Allowed ports of https; default: 443. */
  readonly ports?: readonly number[];
}

/** All addresses of a name, best first. Rejects if there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

const HTTPS_PORTS = [443];

/** The target of `url`; undefined if the rules forbid it. */
export function readTarget(url: string, rules: TargetRules): OutboundTarget | undefined {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return undefined;
  const isTls = parsed.protocol === 'https:';
  if (!isTls && parsed.protocol !== 'http:') return undefined;
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const port = parsed.port === '' ? (isTls ? 443 : 80) : Number(parsed.port);
  const target = { isTls, host, port, authority: parsed.host, path: parsed.pathname + parsed.search };
  if (rules.allowLoopback && (host === 'localhost' || isLoopback(host)))
    return { ...target, isAllowed: isLoopback };
  return isTls && (rules.ports ?? HTTPS_PORTS).includes(port)
    ? { ...target, isAllowed: isPublic }
    : undefined;
}

/** Whether the rules allow a URL. The addresses of its name are checked at every request. */
export function isAllowedUrl(url: string, rules: TargetRules): boolean {
  const target = readTarget(url, rules);
  return target !== undefined && (familyOf(target.host) === 0 || target.isAllowed(target.host));
}

/**
 * The addresses to connect to: the first one of each family, in their order. Empty if the name has none, or if any of them
 * is not allowed: a name with both a private and a public address is suspicious. The name is resolved once, here. Never
 * rejects.
 */
export async function addressesOf(
  target: OutboundTarget,
  resolve: Resolve,
): Promise<readonly CheckedAddress[]> {
  const addresses = familyOf(target.host) === 0 ? await resolve(target.host).catch(() => []) : [target.host];
  if (!addresses.every(target.isAllowed)) return [];
  const families = addresses.map(familyOf);
  return addresses.filter((_, index) => families.indexOf(families[index] ?? 0) === index) as CheckedAddress[];
}

/** Resolves by the system's hosts file and name servers, without a thread that a slow server could block. */
export async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await dns.lookup(host, { all: true })).map(({ address }) => address);
}
