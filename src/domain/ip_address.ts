/**
 * An IP address in the one spelling it has here: IPv4 in dotted decimals, IPv6 as RFC 5952 writes it. An IPv4 address
 * in the clothes of IPv6 (::ffff:192.0.2.1) is the IPv4 address.
 */
export type IpAddress = string & { readonly IpAddress: unique symbol };

/** Addresses whose first `bits` are those of `groups`; an IPv4 network is one of mapped addresses. */
export interface Network {
  readonly groups: readonly number[];
  readonly bits: number;
}

/** Four octets. A leading zero means octal to some readers. */
const DECIMALS = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const MAPPED = [0, 0, 0, 0, 0, 0xffff];
const GROUP_BITS = 16;
const V4_BITS = 32;
const V6_BITS = 128;
/** What a household or a host is given (RFC 6177): its holder can take any address within. */
const SITE_GROUPS = 4;

/** Reads an address. Answers undefined for everything else: names, ports, zones, octets with leading zeros. */
export function parseIpAddress(raw: string): IpAddress | undefined {
  if (DECIMALS.test(raw)) return raw as IpAddress;
  const groups = groupsOf(raw);
  return groups && spelled(groups);
}

/** Reads a network as CIDR writes it, or a single address. Bits beyond the prefix must be zero. */
export function parseNetwork(raw: string): Network | undefined {
  const [address = '', length, ...more] = raw.split('/');
  const groups = groupsOf(address);
  if (!groups || more.length > 0) return undefined;
  const most = address.includes(':') ? V6_BITS : V4_BITS;
  const prefix = length === undefined ? most : /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (!(prefix <= most)) return undefined;
  const network = { groups, bits: prefix + V6_BITS - most };
  const rest = groups.map((group, at) => group & ~maskOf(network.bits, at));
  return rest.every((group) => group === 0) ? network : undefined;
}

export function isWithin(address: IpAddress, { groups, bits }: Network): boolean {
  const own = groupsOf(address) ?? [];
  return groups.every((group, at) => ((own[at] ?? 0) & maskOf(bits, at)) === group);
}

/** What is counted as one caller: an IPv4 address, or the /64 of an IPv6 one. */
export function siteOf(address: IpAddress): string {
  if (!address.includes(':')) return address;
  const site = (groupsOf(address) ?? []).slice(0, SITE_GROUPS);
  return `${site.map((group) => group.toString(16)).join(':')}::/${SITE_GROUPS * GROUP_BITS}`;
}

/** The bits of one group that a prefix decides. */
function maskOf(bits: number, at: number): number {
  const own = Math.min(Math.max(bits - at * GROUP_BITS, 0), GROUP_BITS);
  return (0xffff << (GROUP_BITS - own)) & 0xffff;
}

/** The eight groups of an address. */
function groupsOf(raw: string): readonly number[] | undefined {
  if (raw.includes(':')) return groupsOfV6(raw);
  if (!DECIMALS.test(raw)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = raw.split('.').map(Number);
  return [...MAPPED, a * 256 + b, c * 256 + d];
}

function groupsOfV6(raw: string): readonly number[] | undefined {
  // The parser of URLs knows the grammar; nothing but the address may reach it.
  const host = /^[0-9A-Fa-f:.]{2,45}$/.test(raw) ? URL.parse(`http://[${raw}]`)?.hostname : undefined;
  if (host === undefined) return undefined;
  const [head = '', tail] = host.slice(1, -1).split('::');
  const first = hexadecimals(head);
  const last = tail === undefined ? [] : hexadecimals(tail);
  return [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
}

function hexadecimals(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

function spelled(groups: readonly number[]): IpAddress {
  if (MAPPED.every((group, at) => groups[at] === group)) {
    const octets = groups.slice(MAPPED.length).flatMap((group) => [group >> 8, group & 255]);
    return octets.join('.') as IpAddress;
  }
  const url = new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}]`);
  return url.hostname.slice(1, -1) as IpAddress;
}
