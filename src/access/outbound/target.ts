import { ipFamily, isInNetwork, type Network, parseIpAddress, parseNetwork } from '../../model/ip_address.ts';
import { isLoopbackHost } from '../../model/loopback.ts';
import { type CheckedAddress, isNeverAllowed, isPublic } from './addresses.ts';

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

/** An entry of `--allow-private`: a host that may have any address, or a network that any name may lead into. */
export interface PrivateTarget {
  readonly host?: string;
  readonly network?: Network;
  /** Default: 443, and any where the URL shows loopback. */
  readonly port: number | undefined;
}

export interface TargetRules {
  /** Targets that need not be on port 443 of a public address; default: none. */
  readonly allowPrivate?: readonly PrivateTarget[];
  /** Allows plain HTTP to those of them whose URL shows loopback. */
  readonly allowHttp?: boolean;
}

/** The rule for URLs, as those who write one read it. */
export const TARGET_RULE =
  'must be an https URL of a public host on port 443, without userinfo; private hosts, and http on loopback, need --allow-private';

/** All addresses of a name, best first. Rejects if there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>;

const HTTPS_PORT = 443;
/** Names of loopback (RFC 6761, 6.3), and what they may resolve to. */
const LOCAL_NAME = /(^|\.)localhost\.?$/;
const LOOPBACK = ['127.0.0.1', '::1'];

/** Parses HOST[:PORT] or CIDR[:PORT], where IPv6 before a port has brackets. */
export function parsePrivateTarget(raw: string): PrivateTarget | undefined {
  const [, bracketed, plain, digits] = /^(?:\[(.+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(raw) ?? [];
  const host = (bracketed ?? plain ?? raw).toLowerCase();
  const port = digits === undefined ? undefined : Number(digits);
  if (port === 0 || (port ?? 0) > 65_535) return undefined;
  const network = parseNetwork(host);
  if (network !== undefined) return { network, port };
  // The URL parser makes addresses of 10.1 and 0x7f.1, and accepts *.
  const isName = /^[\w.-]+$/.test(host) && URL.parse(`https://${host}`)?.hostname === host;
  return isName ? { host, port } : undefined;
}

/**
 * The target of `url`; undefined if the rules forbid it, whatever its name resolves to. `namedBy`: the issuer whose
 * discovery document contains the URL, which leads to private addresses only if it is on the host of the issuer.
 */
export function readTarget(url: string, rules: TargetRules, namedBy?: string): OutboundTarget | undefined {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return undefined;
  const isTls = parsed.protocol === 'https:';
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const isLocal = isLocalHost(host);
  if (!isTls && !(parsed.protocol === 'http:' && isLocal && rules.allowHttp)) return undefined;
  const port = Number(parsed.port || (isTls ? HTTPS_PORT : 80));
  const isNamedElsewhere = namedBy !== undefined && URL.parse(namedBy)?.hostname !== parsed.hostname;
  const entries = isNamedElsewhere ? [] : entriesFor(host, port, rules);
  const isAllowed = (address: string) =>
    (!isLocal || isLoopbackHost(address)) &&
    ((port === HTTPS_PORT && isPublic(address)) || entries.some((entry) => covers(entry, address)));
  // What the URL itself shows of its addresses.
  const shown = LOCAL_NAME.test(host) ? LOOPBACK : ipFamily(host) === undefined ? undefined : [host];
  if (!(shown?.some(isAllowed) ?? (port === HTTPS_PORT || entries.length > 0))) return undefined;
  return { isTls, host, port, authority: parsed.host, path: parsed.pathname + parsed.search, isAllowed };
}

/** Whether a URL shows by its host that it leads to this machine. */
function isLocalHost(host: string): boolean {
  return LOCAL_NAME.test(host) || isLoopbackHost(host);
}

function entriesFor(host: string, port: number, { allowPrivate = [] }: TargetRules) {
  const defaultPort = isLocalHost(host) ? port : HTTPS_PORT;
  return allowPrivate.filter(
    (entry) => (entry.host ?? host) === host && (entry.port ?? defaultPort) === port,
  );
}

function covers({ network }: PrivateTarget, address: string): boolean {
  const parsed = parseIpAddress(address);
  if (parsed === undefined || isNeverAllowed(parsed)) return false;
  return network === undefined || isInNetwork(parsed, network);
}

/**
 * The addresses to connect to: the first one of each family, in their order; or one that is not allowed, which refuses
 * all of them: a name with both a private and a public address is suspicious. The name is resolved once, here. Never
 * rejects.
 */
export async function addressesOf(
  { host, isAllowed }: OutboundTarget,
  resolve: Resolve,
): Promise<readonly CheckedAddress[] | { readonly refused: string }> {
  const addresses = ipFamily(host) === undefined ? await resolve(host).catch(() => []) : [host];
  const refused = addresses.find((address) => !isAllowed(address));
  if (refused !== undefined) return { refused };
  const families = addresses.map(ipFamily);
  return addresses.filter((_, index) => families.indexOf(families[index]) === index) as CheckedAddress[];
}

/**
 * Resolves by the system's hosts file and name servers, without a thread that a slow server could block: `node:dns` occupies one of
 * those that verify signatures and passwords.
 */
export async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await Bun.dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address);
}
