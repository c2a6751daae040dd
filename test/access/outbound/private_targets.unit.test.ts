import { describe, expect, test } from 'bun:test';
import { parsePrivateTarget } from '../../../src/access/outbound/target.ts';
import {
  DOCUMENT,
  FORBIDDEN,
  fetchThrough,
  httpResponse,
  PROVIDER_NAME,
  PROVIDER_URL,
  PUBLIC_ADDRESS,
  privateTargets,
  serveTls,
  UNREACHABLE,
} from '../../support/outbound_servers.ts';

/** Targets that `--allow-private` names. The name and its certificate are real, only the connection leads to loopback. */

interface FetchOf {
  readonly allowed: readonly string[];
  readonly url?: string;
  readonly resolved?: readonly string[];
  readonly namedBy?: string;
}

async function fetchOf({ allowed, url = PROVIDER_URL, resolved = ['10.1.2.3'], namedBy }: FetchOf) {
  const server = await serveTls(httpResponse('200 OK', '{"a":1}'));
  const refused: string[] = [];
  const { fetch, addresses } = fetchThrough(server, {
    allowPrivate: privateTargets(...allowed),
    resolve: async () => resolved,
    onRefusedAddress: (host, address) => refused.push(`${host} ${address}`),
  });
  return { fetched: await fetch(url, { namedBy }), addresses, refused };
}

describe('an entry of --allow-private', () => {
  test.each([
    ['its host', [PROVIDER_NAME], PROVIDER_URL, ['10.1.2.3']],
    ['its host in other letter case', [PROVIDER_NAME.toUpperCase()], PROVIDER_URL, ['10.1.2.3']],
    ['its host at a private IPv6 address', [PROVIDER_NAME], PROVIDER_URL, ['fd00::7']],
    [
      'its host at a private and a public address',
      [PROVIDER_NAME],
      PROVIDER_URL,
      [PUBLIC_ADDRESS, '10.1.2.3'],
    ],
    ['its host on its port', [`${PROVIDER_NAME}:8443`], `https://${PROVIDER_NAME}:8443/`, ['10.1.2.3']],
    ['a name in its network', ['10.1.0.0/16'], PROVIDER_URL, ['10.1.2.3']],
    [
      'a name in its network on its port',
      ['10.1.0.0/16:8443'],
      `https://${PROVIDER_NAME}:8443/`,
      ['10.1.2.3'],
    ],
    [
      'a name in its IPv6 network on its port',
      ['[fd00::/8]:8443'],
      `https://${PROVIDER_NAME}:8443/`,
      ['fd00::7'],
    ],
    ['a name in one of two networks', ['fd00::/8', '10.1.2.3'], PROVIDER_URL, ['fd00::7', '10.1.2.3']],
  ])('allows requests to %s', async (_, allowed, url, resolved) => {
    const { fetched, refused } = await fetchOf({ allowed, url, resolved });
    expect([fetched, refused]).toEqual([DOCUMENT, []]);
  });

  test.each([
    ['another name at its address', ['keycloak.internal'], PROVIDER_URL, ['10.1.2.3']],
    ['a name below its host', ['example.com'], PROVIDER_URL, ['10.1.2.3']],
    ['a name in another network', ['10.1.0.0/16'], PROVIDER_URL, ['10.2.0.1']],
    [
      'a name with one address outside of its network',
      ['10.1.0.0/16'],
      PROVIDER_URL,
      ['10.1.2.3', '10.2.0.1'],
    ],
    [
      'its host on the default port where it names another',
      [`${PROVIDER_NAME}:8443`],
      PROVIDER_URL,
      ['10.1.2.3'],
    ],
    [
      'a public address on its port',
      ['10.1.0.0/16:8443'],
      `https://${PROVIDER_NAME}:8443/`,
      [PUBLIC_ADDRESS],
    ],
  ])('does not allow requests to %s', async (_, allowed, url, resolved) => {
    const { fetched, addresses, refused } = await fetchOf({ allowed, url, resolved });
    const address = resolved.at(-1) ?? '';
    expect(fetched).toEqual({ ...UNREACHABLE, refusedAddress: address });
    expect([addresses, refused]).toEqual([[], [`${PROVIDER_NAME} ${address}`]]);
  });

  test.each([
    ['another port', ['10.1.0.0/16', PROVIDER_NAME], `https://${PROVIDER_NAME}:8443/`],
    ['plain HTTP to its host', [PROVIDER_NAME, `${PROVIDER_NAME}:80`], `http://${PROVIDER_NAME}/`],
    ['plain HTTP to its network', ['10.1.0.0/16:80'], 'http://10.1.2.3/'],
    ['an address outside of its network', ['10.1.0.0/16'], 'https://10.2.0.1/'],
    ['an address on another port', ['10.1.0.0/16'], 'https://10.1.2.3:8443/'],
    ['localhost', ['10.1.0.0/16', PROVIDER_NAME], 'https://localhost/'],
    ['plain HTTP to loopback of a service that others reach', ['localhost'], 'http://localhost:8080/'],
  ])('does not allow a URL with %s, before its name is resolved', async (_, allowed, url) => {
    const { fetched, refused } = await fetchOf({ allowed, url });
    expect([fetched, refused]).toEqual([FORBIDDEN, []]);
  });

  const never = [
    ...['0.0.0.0', '0.1.2.3', '169.254.169.254', '224.0.0.1', '168.63.129.16', '100.100.100.200'].flatMap(
      (address) => {
        const groups = Buffer.from(address.split('.').map(Number)).toString('hex').replace(/^.{4}/, '$&:');
        return [address, `::ffff:${address}`, `64:ff9b::${address}`, `2002:${groups}::1`];
      },
    ),
    ...['::', 'fe80::1', 'ff02::1', 'fd00:ec2::254', '64:ff9b:1::a9fe:a9fe'],
  ];
  test.each(never)('never allows %s, neither in a URL nor as the address of a name', async (address) => {
    const everything = [
      '0.0.0.0/1',
      '128.0.0.0/1',
      '::/96',
      '64::/16',
      '2000::/3',
      '4000::/2',
      '8000::/1',
      PROVIDER_NAME,
    ];
    const written = address.includes(':') ? `[${address}]` : address;
    expect((await fetchOf({ allowed: everything, url: `https://${written}/` })).fetched).toEqual(FORBIDDEN);
    const { fetched, addresses } = await fetchOf({ allowed: everything, resolved: [address] });
    expect([fetched, addresses]).toEqual([{ ...UNREACHABLE, refusedAddress: address }, []]);
  });
});

test('a URL in a document leads to private addresses only on the host of the document', async () => {
  const allowed = [PROVIDER_NAME, '10.0.0.0/8'];
  const own = await fetchOf({
    allowed,
    namedBy: `https://${PROVIDER_NAME}/tenant`,
  });
  expect(own.fetched).toEqual(DOCUMENT);
  const namedBy = 'https://login.public.example/';
  expect((await fetchOf({ allowed, namedBy })).fetched).toEqual({
    ...UNREACHABLE,
    refusedAddress: '10.1.2.3',
  });
  expect((await fetchOf({ allowed, namedBy, url: 'https://10.1.2.3/' })).fetched).toEqual(FORBIDDEN);
  expect((await fetchOf({ allowed, namedBy, resolved: [PUBLIC_ADDRESS] })).fetched).toEqual(DOCUMENT);
});

test.each([
  ...[
    '',
    ':443',
    'a b',
    '*',
    '*.internal',
    'https://a.internal',
    'a.internal/',
    'a.internal:0',
    'a.internal:65536',
  ],
  ...[
    'a.internal:x',
    '10.1',
    '0x7f.1',
    '10.1.2.3/8',
    '0.0.0.0/0',
    '::/0',
    '[::/0]:443',
    '[fd00::/8',
    'user@a.internal',
  ],
])('%j is no entry of --allow-private', (raw) => {
  expect(parsePrivateTarget(raw)).toBeUndefined();
});
