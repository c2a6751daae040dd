import { BlockList, isIP } from 'node:net';

/**
 * An IP address in canonical form: IPv4 in dotted decimals, IPv6 as in RFC 5952. An IPv4-mapped IPv6 address
 * (::ffff:192.0.2.1) is the IPv4 address.
 */
export type IpAddress = string & { readonly IpAddress: unique symbol };

/** A CIDR block, with its text. A block of mapped addresses is the block of their IPv4 addresses. */
export interface Network extends Pick<BlockList, 'check'> {
  readonly cidr: string;
}

/** The first and the last address of each family: a block that has both has all of them. */
const OUTERMOST = [
  ['0.0.0.0', '255.255.255.255'],
  ['::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
] as IpAddress[][];
const FAMILY = { 4: 'ipv4', 6: 'ipv6' } as const;
const PREFIX_BITS_MAX = { 4: 32, 6: 128 } as const;
/** The /64 of a household or host (RFC 6177): its holder can use any address in it. */
const SITE_GROUPS = 4;
/** The /48 that a site may get (RFC 6177, 2): its holder can use any /64 in it. */
const WIDE_SITE_GROUPS = 3;
const GROUP_BITS = 16;

/** Parses an address. Returns undefined for names, ports, zones and octets with leading zeros. */
export function parseIpAddress(raw: string): IpAddress | undefined {
  const family = ipFamily(raw);
  if (family !== 6) return family && (raw as IpAddress);
  const address = canonicalIpv6(raw);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address as IpAddress;
  const octets = [high, low].map((group) => Number.parseInt(group, 16)).flatMap((n) => [n >> 8, n & 255]);
  return octets.join('.') as IpAddress;
}

/**
 * Parses a network in CIDR notation, or a single address. Bits beyond the prefix must be zero. A network of all IPv4 or all IPv6
 * addresses is rejected: it names nothing, and whatever it allows would be allowed to strangers.
 */
export function parseNetwork(raw: string): Network | undefined {
  const [address = '', length, ...more] = raw.split('/');
  const family = ipFamily(address);
  if (!family || more.length > 0) return undefined;
  const bitsMax = PREFIX_BITS_MAX[family];
  const prefix = length === undefined ? bitsMax : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (!(prefix <= bitsMax)) return undefined;
  const bits =
    family === 4 ? binary(address.split('.'), 10, 8) : binary(groupsOf(canonicalIpv6(address)), 16, 16);
  if (bits.includes('1', prefix)) return undefined;
  const network = Object.assign(new BlockList(), { cidr: raw });
  network.addSubnet(address, prefix, FAMILY[family]);
  const isAll = OUTERMOST.some((pair) => pair.every((outermost) => isInNetwork(outermost, network)));
  return isAll ? undefined : network;
}

/** An address as proxies write it: IPv6 often in brackets, either with an optional port. */
export function parseNodeAddress(node: string): IpAddress | undefined {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(node.trim()) ?? [];
  return parseIpAddress(bracketed ?? dotted ?? node.trim());
}

export function isInNetwork(address: IpAddress, network: Network): boolean {
  return network.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

/** False for no address. */
export function isInAny(address: IpAddress | undefined, networks: readonly Network[]): boolean {
  return address !== undefined && networks.some((network) => isInNetwork(address, network));
}

/** The unit that rate limits count: an IPv4 address, or the /64 of an IPv6 address. */
export function clientSubnet(address: IpAddress): string {
  return subnetOf(address, SITE_GROUPS);
}

/** An IPv4 address, or the /48 of an IPv6 address. */
export function wideSubnet(address: IpAddress): string {
  return subnetOf(address, WIDE_SITE_GROUPS);
}

function subnetOf(address: IpAddress, groups: number): string {
  if (!address.includes(':')) return address;
  return `${groupsOf(address).slice(0, groups).join(':')}::/${groups * GROUP_BITS}`;
}

/** 4 or 6; undefined for any other text. An address with a zone is rejected: the zone names an interface of this host. */
export function ipFamily(raw: string): 4 | 6 | undefined {
  const family = raw.includes('%') ? 0 : isIP(raw);
  return family === 4 || family === 6 ? family : undefined;
}

/** The URL parser writes IPv6 addresses as in RFC 5952. */
function canonicalIpv6(v6: string): string {
  return new URL(`http://[${v6}]`).hostname.slice(1, -1);
}

/** The eight hexadecimal groups of a canonical IPv6 address. */
function groupsOf(v6: string): readonly string[] {
  const [head = '', tail = ''] = v6.split('::').map((groups) => groups.split(':').filter(Boolean));
  return [...head, ...new Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
}

function binary(parts: readonly string[], radix: number, width: number): string {
  return parts.map((part) => Number.parseInt(part, radix).toString(2).padStart(width, '0')).join('');
}
