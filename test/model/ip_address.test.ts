import { describe, expect, test } from 'bun:test';
import {
  clientSubnet,
  type IpAddress,
  isInNetwork,
  parseIpAddress,
  parseNetwork,
} from '../../src/model/ip_address.ts';

const read = (raw: string): string | undefined => parseIpAddress(raw);

describe('an address', () => {
  const spelled: readonly (readonly [string, string])[] = [
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['::1', '::1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8::00a0', '2001:db8::a0'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['fe80::1', 'fe80::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    // Only that block is converted to IPv4.
    ['::192.0.2.1', '::c000:201'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ];
  test.each(spelled)('the IP address %s is parsed as %s', (raw, address) => {
    expect(read(raw)).toBe(address);
    expect(read(address)).toBe(address);
  });

  const none = [
    '',
    'localhost',
    'unknown',
    '1',
    '127.1',
    '0x7f000001',
    '192.0.2.256',
    '192.0.2.01',
    '192.0.2.1.5',
    '192.0.2.1 ',
    '192.0.2.1:80',
    '٣.0.0.1',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7:8:9',
    'fe80::1%eth0',
    '[::1]',
    '::1]/x[',
    '::1]:80',
    '12345::',
    '::ffff:999.0.2.1',
  ];
  test.each(none)('%j is not an IP address', (raw) => expect(read(raw)).toBeUndefined());
});

describe('a network', () => {
  const within: readonly (readonly [string, string, boolean])[] = [
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['192.0.2.128/25', '192.0.2.127', false],
    ['192.0.2.128/25', '192.0.2.128', true],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['192.0.2.1/32', '192.0.2.1', true],
    ['128.0.0.0/1', '203.0.113.9', true],
    ['128.0.0.0/1', '2001:db8::1', false],
    ['2000::/3', '2001:db8::1', true],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['::1', '::1', true],
    ['::1', '127.0.0.1', false],
  ];
  test.each(within)('the network %s contains %s: %p', (network, address, isIn) => {
    const parsed = parseNetwork(network);
    if (!parsed) throw new Error(`no network ${network}`);
    expect(isInNetwork(parseIpAddress(address) as IpAddress, parsed)).toBe(isIn);
  });

  const none = [
    '10.0.0.1/8',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/0x8',
    '::/129',
    '2001:db8::1/64',
    'proxy.example',
    '/8',
    // All addresses of a family.
    '0.0.0.0/0',
    '::/0',
    '::ffff:0.0.0.0/96',
    '::/64',
  ];
  test.each(none)('%j is not an IP network', (raw) => expect(parseNetwork(raw)).toBeUndefined());
});

test('the subnet of a client is its IPv4 address, or the /64 of its IPv6 address', () => {
  const subnetOf = (raw: string) => clientSubnet(parseIpAddress(raw) as IpAddress);
  expect(subnetOf('192.0.2.1')).toBe('192.0.2.1');
  expect(subnetOf('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(subnetOf('2001:db8:1:2::1')).toBe('2001:db8:1:2::/64');
  expect(subnetOf('2001:db8:1:2:ffff:ffff:ffff:ffff')).toBe(subnetOf('2001:db8:1:2::'));
  expect(subnetOf('2001:db8:1:3::1')).not.toBe(subnetOf('2001:db8:1:2::1'));
});
