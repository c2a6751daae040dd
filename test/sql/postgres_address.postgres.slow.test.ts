import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { readSettings } from '../../src/app/config/parse.ts';
import { Refusal } from '../../src/model/fault.ts';
import { addressName, type PostgresAddress, parseDatabase } from '../../src/ops/store/open.ts';
import { parsePostgres, postgresUrlError } from '../../src/sql/postgres/address.ts';

const PLAIN: PostgresAddress = {
  engine: 'postgres',
  hosts: [{ host: 'localhost', port: 5432 }],
  database: 'shop',
  user: 'clerk',
  password: undefined,
  passwordFile: undefined,
  tls: 'disable',
  rootCertificates: undefined,
  isPrepared: true,
  isBalanced: false,
};
const remote = (host: string, port = 5432) => ({ hosts: [{ host, port }], tls: 'verify-full' as const });

describe('a PostgreSQL URL is parsed', () => {
  const rows: [string, Partial<PostgresAddress>][] = [
    ['postgres://clerk@localhost/shop', {}],
    ['postgresql://clerk@localhost:5432/shop', {}],
    ['postgres://clerk:s3cret@localhost/shop', { password: 's3cret' }],
    ['postgres://clerk:@localhost/shop', {}],
    ['postgres://clerk:a:b@localhost/shop', { password: 'a:b' }],
    ['postgres://clerk:p%40%2F%3A%25@localhost/shop', { password: 'p@/:%' }],
    ['postgres://clerk:p@ss@localhost/shop', { password: 'p@ss' }],
    ['postgres://cl%C3%A9rk@localhost/sh%20op', { user: 'clérk', database: 'sh op' }],
    ['postgres://clerk@localhost:6543/shop', { hosts: [{ host: 'localhost', port: 6543 }] }],
    ['postgres://clerk@[::1]:6543/shop', { hosts: [{ host: '::1', port: 6543 }] }],
    ['postgres://clerk@127.8.8.8/shop', { hosts: [{ host: '127.8.8.8', port: 5432 }] }],
    ['postgres://clerk@db.example/shop', remote('db.example')],
    ['postgres://clerk@[2001:db8::1]/shop', remote('2001:db8::1')],
    ['postgres://clerk@10.0.0.1:6543/shop', remote('10.0.0.1', 6543)],
    ['postgres://clerk@0.0.0.0/shop', remote('0.0.0.0')],
    ['postgres://clerk@127.1/shop', remote('127.1')],
    [
      'postgres://clerk@localhost,db.example:5433,[::1]/shop',
      {
        hosts: [
          { host: 'localhost', port: 5432 },
          { host: 'db.example', port: 5433 },
          { host: '::1', port: 5432 },
        ],
        tls: 'verify-full',
      },
    ],
    ['postgres://clerk@db.example/shop?sslmode=disable', { ...remote('db.example'), tls: 'disable' }],
    ['postgres://clerk@db.example/shop?sslmode=require', { ...remote('db.example'), tls: 'require' }],
    ['postgres://clerk@localhost/shop?load_balance_hosts=random', { isBalanced: true }],
    ['postgres://clerk@localhost/shop?load_balance_hosts=disable', {}],
    ['postgres://clerk@localhost/shop?sslmode=verify-ca', { tls: 'verify-ca' }],
    [
      'postgres://clerk@localhost/shop?sslrootcert=/etc/ca.pem',
      { tls: 'verify-full', rootCertificates: '/etc/ca.pem' },
    ],
    ['postgres://clerk@localhost/shop?prepare=off', { isPrepared: false }],
    ['postgres://clerk@localhost/shop?prepare=on&sslmode=require', { tls: 'require' }],
    ['postgres://clerk@localhost/shop?', {}],
  ];
  test.each(rows)('the URL %s is accepted', (url, differences) => {
    expect(parseDatabase(url)).toEqual({ ...PLAIN, ...differences });
    expect(postgresUrlError(url)).toBeUndefined();
  });
});

describe('a PostgreSQL URL is refused', () => {
  const MODES = 'sslmode must be one of disable, require, verify-ca, verify-full';
  const rows: [string, string][] = [
    ['postgres://', 'the user is missing'],
    ['postgres://localhost/shop', 'the user is missing'],
    ['postgres://:s3cret@localhost/shop', 'the user is missing'],
    ['postgres://clerk@localhost', 'the database is missing'],
    ['postgres://clerk@localhost/', 'the database is missing'],
    ['postgres://clerk@/shop', 'a host must be'],
    ['postgres://clerk@localhost,/shop', 'a host must be'],
    ['postgres://clerk@::1/shop', 'a host must be'],
    ['postgres://clerk@[localhost]/shop', 'a host must be'],
    ['postgres://clerk@[1::2::3]/shop', 'a host must be'],
    ['postgres://clerk@local host/shop', 'a host must be'],
    ['postgres://clerk@%2Fvar%2Frun/shop', 'a host must be'],
    ['postgres://clerk@localhost:0/shop', 'a host must be'],
    ['postgres://clerk@localhost:65536/shop', 'a host must be'],
    ['postgres://clerk@localhost:/shop', 'a host must be'],
    ['postgres://clerk@localhost:x/shop', 'a host must be'],
    ['postgres://clerk@localhost/shop/more', 'in a name or password as %2F'],
    ['postgres://clerk@localhost/shop#x', 'in a name or password as %2F'],
    ['postgres://clerk:s3/cret@localhost/shop', 'in a name or password as %2F'],
    ['postgres://clerk:%zz@localhost/shop', 'two hexadecimal digits'],
    ['postgres://clerk:%00@localhost/shop', 'control character'],
    ['postgres://clerk@localhost/%0A', 'control character'],
    ['postgres://clerk@localhost/shop?sslmode=prefer', MODES],
    ['postgres://clerk@localhost/shop?sslmode=allow', MODES],
    ['postgres://clerk@localhost/shop?sslmode=', MODES],
    ['postgres://clerk@localhost/shop?sslmode=VERIFY-FULL', MODES],
    [
      'postgres://clerk@localhost/shop?ssl=true',
      'the parameters are sslmode, sslrootcert, prepare, load_balance_hosts',
    ],
    ['postgres://clerk@localhost/shop?options=-c%20x=y', 'the parameters are'],
    ['postgres://clerk@localhost/shop?password=s3cret', 'the parameters are'],
    ['postgres://clerk@localhost/shop?load_balance_hosts=on', 'load_balance_hosts must be disable or random'],
    ['postgres://clerk@localhost/shop?prepare=no', 'prepare must be on or off'],
    ['postgres://clerk@localhost/shop?sslrootcert=', 'sslrootcert must be a path'],
    ['postgres://clerk@localhost/shop?sslmode=disable&sslrootcert=a', 'sslrootcert has no meaning'],
  ];
  test.each(rows)('the URL %s is refused', (url, message) => {
    expect(parseDatabase(url)).toBeUndefined();
    expect(postgresUrlError(url)).toContain(message);
    expect(() => readSettings({}, { AUTHREALM_DATABASE: url })).toThrow(message);
  });
});

test('the refusal of a URL does not repeat any part of it', () => {
  const secret = 'hunter2';
  for (const url of [
    `postgres://clerk:${secret}@localhost`,
    `postgres://clerk:${secret}@localhost/shop?${secret}=1`,
    `postgres://clerk:${secret}@localhost/shop?sslmode=${secret}`,
    `postgres://clerk:${secret}%@localhost/shop`,
    `postgres://clerk:${secret}/@localhost/shop`,
  ]) {
    try {
      readSettings({}, { AUTHREALM_DATABASE: url });
      throw new Error('was accepted');
    } catch (error) {
      expect(error).toBeInstanceOf(Refusal);
      expect((error as Refusal).message).toContain('AUTHREALM_DATABASE must be postgres://');
      expect((error as Refusal).message).not.toContain(secret);
    }
  }
});

test('any user, password and database of a URL is parsed unchanged', () => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .filter((each) => !/\p{Cc}/u.test(each));
  fc.assert(
    fc.property(text, text, text, (user, password, database) => {
      const [u, p, d] = [user, password, database].map(encodeURIComponent);
      const read = parsePostgres(`postgres://${u}:${p}@localhost/${d}`);
      expect(read).toEqual({ ...PLAIN, user, password, database });
      expect(addressName(read as PostgresAddress)).toBe(`${database} on localhost:5432`);
    }),
  );
});

test('any text is either parsed as a URL or refused', () => {
  const piece = fc.constantFrom(
    'postgres:',
    '//',
    '/',
    '@',
    ':',
    ',',
    '[',
    ']',
    '?',
    '&',
    '=',
    '%',
    '#',
    'a',
    '1',
    '\0',
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 20 }), (pieces) => {
      const url = `postgres://${pieces.join('')}`;
      expect(parsePostgres(url) === undefined).toBe(postgresUrlError(url) !== undefined);
    }),
    { numRuns: 2_000 },
  );
});
