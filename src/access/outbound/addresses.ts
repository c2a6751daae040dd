import { BlockList } from 'node:net';
import { ipFamily } from '../../model/ip_address.ts';

/** The first address of a block, and the length of its prefix. */
type Block = readonly [string, number];

/** An address that was checked and may be connected to. */
export type CheckedAddress = string & { readonly CheckedAddress: unique symbol };

/**
 * The IANA IPv4 Special-Purpose Address Registry (RFC 6890) and reserved blocks, except those in `NEVER_V4`. Whole
 * blocks are rejected, including globally reachable addresses (192.0.0.9, AS112, AMT): those are anycast services of
 * the network, and no provider can have one.
 */
const SPECIAL_V4: readonly Block[] = [
  ['10.0.0.0', 8], // private use, RFC 1918
  ['100.64.0.0', 10], // shared address space, RFC 6598
  ['127.0.0.0', 8], // loopback, RFC 1122
  ['172.16.0.0', 12], // private use, RFC 1918
  ['192.0.0.0', 24], // IETF protocol assignments, RFC 6890; .9 (PCP), .10 (TURN), .170 and .171 (NAT64) within
  ['192.0.2.0', 24], // documentation, RFC 5737
  ['192.31.196.0', 24], // AS112, RFC 7535
  ['192.52.193.0', 24], // AMT, RFC 7450
  ['192.88.99.0', 24], // 6to4 relays, RFC 7526
  ['192.168.0.0', 16], // private use, RFC 1918
  ['192.175.48.0', 24], // AS112, RFC 7534
  ['198.18.0.0', 15], // benchmarking, RFC 2544
  ['198.51.100.0', 24], // documentation, RFC 5737
  ['203.0.113.0', 24], // documentation, RFC 5737
  ['240.0.0.0', 4], // reserved, RFC 1112; limited broadcast within
];

/**
 * Global unicast is allocated from this block alone (RFC 4291, 2.4, and IANA's IPv6 Address Space). Rejected because
 * they are outside of it: ::, ::1, IPv4-compatible and IPv4-mapped addresses whatever they embed, NAT64 (64:ff9b::/96
 * and 64:ff9b:1::/48), discard (100::/64 and 100:0:0:1::/64), SRv6 (5f00::/16), unique local (fc00::/7), link-local
 * (fe80::/10), site-local (fec0::/10), multicast (ff00::/8).
 */
const UNICAST_V6: readonly Block[] = [['2000::', 3]];

/** Blocks of it in the IANA IPv6 Special-Purpose Address Registry, rejected as a whole too. */
const SPECIAL_V6: readonly Block[] = [
  ['2001::', 23], // IETF protocol assignments, RFC 2928; Teredo, benchmarking, AMT, ORCHID, DETs, anycasts within
  ['2001:db8::', 32], // documentation, RFC 3849
  ['2002::', 16], // 6to4, RFC 3056: embeds an IPv4 address
  ['2620:4f:8000::', 48], // AS112, RFC 7534
  ['3fff::', 20], // documentation, RFC 9637
];

/**
 * IPv4 blocks that no setting allows: services of the machine's own network and platform, which trust its address. Any
 * other private address can be allowed.
 */
const NEVER_V4: readonly Block[] = [
  ['0.0.0.0', 8], // this network, RFC 791; unspecified within
  ['100.100.100.200', 32], // metadata service of Alibaba Cloud
  ['168.63.129.16', 32], // platform of Azure, in a public block
  ['169.254.0.0', 16], // link-local, RFC 3927; metadata services of clouds
  ['224.0.0.0', 4], // multicast, RFC 5771
];

/** The same of IPv6. Mapped addresses are checked as IPv4. */
const NEVER_V6: readonly Block[] = [
  ['::', 128], // unspecified
  ['64:ff9b:1::', 48], // local-use NAT64, RFC 8215: its operator chooses the position of the IPv4 address
  ['fd00:ec2::254', 128], // metadata service of AWS
  ['fe80::', 10], // link-local, RFC 4291
  ['ff00::', 8], // multicast, RFC 4291
];

/** An IPv4 block inside NAT64 (RFC 6052) and 6to4 (RFC 3056) addresses. */
function embeddings([block, bits]: Block): readonly Block[] {
  const hex = Buffer.from(block.split('.').map(Number)).toString('hex').replace(/^.{4}/, '$&:');
  return [
    [`64:ff9b::${hex}`, 96 + bits],
    [`2002:${hex}::`, 16 + bits],
  ];
}

const never = listOf([...NEVER_V4, ...NEVER_V4.flatMap(embeddings), ...NEVER_V6]);
const special = listOf([...SPECIAL_V4, ...SPECIAL_V6]);
const unicastV6 = listOf(UNICAST_V6);

/** Whether `address` is an IP address of the public internet. */
export function isPublic(address: string): boolean {
  const isUnicast = ipFamily(address) === 4 || isIn(unicastV6, address);
  return isUnicast && !isIn(special, address) && !isNeverAllowed(address);
}

/** Whether no setting allows this IP address, or the IPv4 address inside it. */
export function isNeverAllowed(address: string): boolean {
  return isIn(never, address);
}

function isIn(list: BlockList, address: string): boolean {
  const family = ipFamily(address);
  return family !== undefined && list.check(address, `ipv${family}`);
}

function listOf(rows: readonly Block[]): BlockList {
  const list = new BlockList();
  for (const [block, bits] of rows) list.addSubnet(block, bits, block.includes(':') ? 'ipv6' : 'ipv4');
  return list;
}
