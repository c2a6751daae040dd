import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isPublic } from '../../../src/access/outbound/addresses.ts';

describe('special-purpose addresses', () => {
  test.each([
    ['this network', ['0.0.0.0', '0.0.0.1', '0.255.255.255']],
    [
      'private use',
      ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255'],
    ],
    ['the platform of Azure, in a public block', ['168.63.129.16']],
    ['shared address space', ['100.64.0.0', '100.127.255.255']],
    ['loopback', ['127.0.0.0', '127.0.0.1', '127.255.255.255']],
    [
      'link-local, with the metadata services of clouds',
      ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    ],
    ['IETF protocol assignments', ['192.0.0.0', '192.0.0.8', '192.0.0.170', '192.0.0.171', '192.0.0.255']],
    ['anycast inside of them', ['192.0.0.9', '192.0.0.10']],
    [
      'documentation',
      ['192.0.2.0', '192.0.2.255', '198.51.100.0', '198.51.100.255', '203.0.113.0', '203.0.113.255'],
    ],
    [
      'AS112 and AMT',
      ['192.31.196.1', '192.52.193.1', '192.175.48.1', '2620:4f:8000::', '2620:4f:8000:ffff::1'],
    ],
    ['6to4 relays', ['192.88.99.0', '192.88.99.2', '192.88.99.255']],
    ['benchmarking', ['198.18.0.0', '198.19.255.255', '2001:2::1']],
    [
      'multicast',
      ['224.0.0.0', '239.255.255.255', 'ff00::', 'ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ],
    ['reserved', ['240.0.0.0', '255.255.255.254', '255.255.255.255']],
    ['unspecified and loopback', ['::', '::1', '0:0:0:0:0:0:0:1']],
    ['IPv4-compatible', ['::7f00:1', '::8.8.8.8', '::127.0.0.1']],
    [
      'IPv4-mapped, whatever the IPv4 address',
      ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:8.8.8.8'],
    ],
    ['IPv4-translated', ['::ffff:0:127.0.0.1', '::ffff:0:808:808']],
    [
      'NAT64',
      ['64:ff9b::', '64:ff9b::127.0.0.1', '64:ff9b::808:808', '64:ff9b:1::', '64:ff9b:1:ffff::a00:1'],
    ],
    ['discard', ['100::', '100::ffff:ffff:ffff:ffff', '100:0:0:1::1']],
    ['Teredo', ['2001::', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff']],
    [
      'the rest of 2001::/23',
      ['2001:1::1', '2001:1::2', '2001:1::3', '2001:3::1', '2001:4:112::1', '2001:10::1'],
    ],
    [
      'ORCHIDv2 and DETs',
      ['2001:20::1', '2001:2f:ffff::', '2001:30::1', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ],
    ['documentation, version 6', ['2001:db8::', '2001:db8:ffff:ffff::1', '3fff::', '3fff:fff:ffff::1']],
    ['6to4', ['2002::', '2002:7f00:1::', '2002:808:808::1', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['SRv6', ['5f00::', '5f00:ffff::1']],
    ['unique local', ['fc00::', 'fd00:ec2::254', 'fdff:ffff::1']],
    ['link-local and site-local', ['fe80::', 'fe80::1', 'febf::1', 'fec0::', 'feff::1']],
    ['never allocated', ['1fff:ffff::1', '4000::', '4000::1', '8000::1', 'fe00::1', '200::1']],
  ] as const)('special-purpose addresses are not public: %s', (_, addresses) => {
    for (const address of addresses) expect([address, isPublic(address)]).toEqual([address, false]);
  });
});

describe('texts that are no plain address', () => {
  test.each([
    'fe80::1%eth0',
    '2606:4700::1111%eth0',
    '2606:4700::1111%',
    '8.8.8.8%1',
    '8.8.8',
    '8.8',
    '134744072',
    '0x8.8.8.8',
    '0x08080808',
    '010.8.8.8',
    '08.8.8.8',
    '8.8.8.8.',
    '8.8.8.8 ',
    ' 8.8.8.8',
    '8.8.8.8\0',
    '8.8.8.256',
    '８.8.8.8',
    '8.8.8.8/32',
    '8.8.8.8:443',
    '[2606:4700::1111]',
    '2606:4700::1111::',
    '2606:4700',
    'localhost',
    'example.com',
    '',
  ])('%j is no public address', (address) => {
    expect(isPublic(address)).toBe(false);
  });
});

test('the addresses next to every special-purpose block are public', () => {
  for (const address of [
    ...[
      '1.0.0.0',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '126.255.255.255',
      '128.0.0.0',
    ],
    ...['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0'],
    ...['192.0.1.255', '192.0.3.0', '192.31.195.255', '192.31.197.0', '192.52.192.255', '192.52.194.0'],
    ...['192.88.98.255', '192.88.100.0', '192.167.255.255', '192.169.0.0', '192.175.47.255', '192.175.49.0'],
    ...['198.17.255.255', '198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0'],
    ...['223.255.255.255', '8.8.8.8', '93.184.216.34'],
    ...['2000::', '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:200::', '2001:db7:ffff::1', '2001:db9::'],
    ...['2001:ffff:ffff::1', '2003::', '2606:4700:4700::1111', '2606:4700:4700:0:0:0:0:1111', '2A00:1450::1'],
    ...['2620:4f:7fff:ffff::1', '2620:4f:8001::', '3ffe:ffff::1', '3fff:1000::', '3fff:ffff:ffff::1'],
  ])
    expect([address, isPublic(address)]).toEqual([address, true]);
});

test('an IPv4 address is public exactly if it is outside of the special-purpose blocks', () => {
  const isSpecial = ([a, b, c]: readonly [number, number, number, number]): boolean =>
    [0, 10, 127].includes(a) ||
    a >= 224 ||
    (a === 100 && b >= 64 && b <= 127) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b <= 31) ||
    (a === 198 && (b === 18 || b === 19)) ||
    (a === 192 && b === 168) ||
    ['192.0.0', '192.0.2', '192.31.196', '192.52.193', '192.88.99', '192.175.48'].includes(
      `${a}.${b}.${c}`,
    ) ||
    ['198.51.100', '203.0.113'].includes(`${a}.${b}.${c}`);
  // Half of the draws start like a special block, so that its inside and edges are drawn.
  const first = fc.oneof(fc.nat(255), fc.constantFrom(100, 169, 172, 192, 198, 203));
  const second = fc.oneof(fc.nat(255), fc.constantFrom(0, 16, 18, 31, 51, 52, 64, 88, 127, 168, 175, 254));
  const third = fc.oneof(fc.nat(255), fc.constantFrom(0, 2, 48, 99, 100, 113, 193, 196));
  fc.assert(
    fc.property(fc.tuple(first, second, third, fc.nat(255)), (bytes) => {
      const address = bytes.join('.');
      expect([address, isPublic(address)]).toEqual([address, !isSpecial(bytes)]);
    }),
    { numRuns: 2_000 },
  );
});
