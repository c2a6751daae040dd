import { promises as dns } from 'node:dns';
import { type CheckedAddress, familyOf, isLoopback, isPublic } from './addresses.ts';

/** Where a URL leads, read but not yet resolved. */
export interface OutboundTarget {
  readonly isTls: boolean;
  /** The host as it is asked for: a name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** The `Host` header: host, and the port where it is not the scheme's own. */
  readonly authority: string;
  readonly path: string;
  /** Which addresses this target may have. */
  readonly isAllowed: (address: string) => boolean;
}

export interface TargetRules {
  /** Lets http and https reach 127.0.0.0/8, ::1 and `localhost`, at any port. Loosens nothing else. */
  readonly allowLoopback?: boolean;
  /** Ports of https; 443 unless told otherwise. */
  readonly ports?: readonly number[];
}

/** All addresses of a name, best first. Rejects where there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

const HTTPS_PORTS = [443];

/** Where `url` leads, or undefined where the rules let nobody go. */
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

/** Whether the rules let anybody go to a URL; what its name resolves to is judged each time. */
export function isAllowedUrl(url: string, rules: TargetRules): boolean {
  const target = readTarget(url, rules);
  return target !== undefined && (familyOf(target.host) === 0 || target.isAllowed(target.host));
}

/**
 * The addresses to connect to: of each family the first, in the order they were told. Empty where the name has none, or
 * where any of them is not allowed: a name with a private address beside a public one is no accident.
 * The name is resolved here and never again. Never rejects.
 */
export async function addressesOf(
  target: OutboundTarget,
  resolve: Resolve,
): Promise<readonly CheckedAddress[]> {
  const addresses = familyOf(target.host) === 0 ? await resolve(target.host).catch(() => []) : [target.host];
  if (!addresses.every(target.isAllowed)) return [];
  const families = addresses.map(familyOf);
  return addresses.filter((_, place) => families.indexOf(families[place] ?? 0) === place) as CheckedAddress[];
}

/** The system's hosts file and name servers, without a thread that a slow server could hold. */
export async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await dns.lookup(host, { all: true })).map(({ address }) => address);
}
