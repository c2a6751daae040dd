import { describe, expect, test } from 'bun:test';
import { openGuardedFetch } from '../../../src/access/outbound/guarded_fetch.ts';
import {
  FORBIDDEN,
  fetchThrough,
  httpResponse,
  LOOPBACK_RULES,
  PROVIDER_NAME,
  PUBLIC_ADDRESS,
  serveTls,
} from '../../support/outbound_servers.ts';

const OK = '200 OK';

describe('URLs that are never dialled', () => {
  test.each([
    ...[`http://${PROVIDER_NAME}/`, `http://${PROVIDER_NAME}:443/`, `http://${PUBLIC_ADDRESS}/`],
    ...[`https://${PROVIDER_NAME}:80/`, `https://${PROVIDER_NAME}:22/`, `https://${PROVIDER_NAME}:0/`],
    ...[
      `https://user@${PROVIDER_NAME}/`,
      `https://user:secret@${PROVIDER_NAME}/`,
      'https://:x@login.example.com/',
    ],
    ...[
      'ftp://login.example.com/',
      'file:///etc/passwd',
      'data:application/json,{}',
      'ws://login.example.com/',
    ],
    ...[
      'unix:/run/socket',
      'blob:https://login.example.com/',
      'login.example.com',
      '//login.example.com/',
      '',
    ],
  ])('the URL %s is not dialled, whatever it resolves to', async (url) => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    for (const rules of [{}, LOOPBACK_RULES]) {
      const { fetch, addresses } = fetchThrough(server, rules);
      expect(await fetch(url)).toEqual(FORBIDDEN);
      expect(addresses).toEqual([]);
    }
  });
});

describe('addresses in URLs', () => {
  test.each([
    ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '017700000001', '0177.0.0.1'],
    ...['127.0.0.1.', '0', '0.0.0.0', '10.0.0.1', '012.0.0.1', '167772161', '192.168.1', '172.16.0.1'],
    ...[
      '169.254.169.254',
      '0xa9fea9fe',
      '2852039166',
      '0251.0376.0251.0376',
      '100.100.100.200',
      '255.255.255.255',
    ],
    ...['[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:8.8.8.8]'],
    ...[
      '[::127.0.0.1]',
      '[2002:7f00:1::]',
      '[2002:a9fe:a9fe::1]',
      '[64:ff9b::127.0.0.1]',
      '[64:ff9b:1::a00:1]',
    ],
    ...[
      '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
      '[fe80::1]',
      '[fe80::1%25lo]',
      '[fc00::1]',
      '[fd00:ec2::254]',
    ],
    ...['[ff02::1]', '[2001:db8::1]', '[5f00::1]', '[100::1]', '１２７.0.0.1', '①②⑦.0.0.1', '127。0。0。1'],
  ])('the host %s is neither resolved nor dialled', async (host) => {
    const tried: string[] = [];
    const fetchDocument = openGuardedFetch({
      resolve: async (name) => {
        tried.push(name);
        return ['127.0.0.1'];
      },
      exchange: async (_target, address) => {
        tried.push(address);
        return { kind: 'broken' };
      },
    });
    expect(await fetchDocument(`https://${host}/`)).toEqual(FORBIDDEN);
    expect(tried).toEqual([]);
  });

  test.each(['8.8.8.8', '0x08.8.8.8', '134744072', '[2606:4700:4700::1111]'])(
    'the public address %s is dialled without being resolved',
    async (host) => {
      const tried: string[] = [];
      const resolve = () => Promise.reject(new Error('an address is not resolved'));
      const exchange = async (_target: unknown, address: string) => {
        tried.push(address);
        return { kind: 'broken' } as const;
      };
      await openGuardedFetch({ resolve, exchange })(`https://${host}/`);
      expect(tried).toEqual([host.startsWith('[') ? '2606:4700:4700::1111' : '8.8.8.8']);
    },
  );
});

test.each([
  ...[
    `${'a'.repeat(63)}.example`,
    `${'a'.repeat(300)}.example`,
    `${'a.'.repeat(200)}example`,
    'a..b',
    'a..',
    '_a.b',
  ],
  ...[
    'a_b',
    '-a',
    'xn--a',
    '*.example.com',
    "a'b",
    'a!b',
    'a$b.example',
    'bücher.example',
    'a(b)',
    'a,b',
    'a;b',
  ],
])('an unusual host name (%s) is not answered', async (host) => {
  const server = await serveTls(httpResponse(OK, '{"a":1}'));
  const unusualPath = '/%00/%ff/é/\u{1f600}/|^`{}\'"<>?a=\u{1f600}&b=|\'"';
  const { kind } = await fetchThrough(server).fetch(`https://${host}${unusualPath}`);
  // The URL parser refuses some of them.
  expect(kind).toBeOneOf(['forbidden', 'unreachable']);
});
