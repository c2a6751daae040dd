import { describe, expect, test } from 'bun:test';
import { TARGET_RULE } from '../../src/access/outbound/target.ts';
import { type Flags, originsOf, readSettings, SETTINGS, urlRule } from '../../src/app/config/parse.ts';
import { Refusal } from '../../src/model/fault.ts';
import { urlWithoutPassword } from '../../src/ops/store/open.ts';

function complaints(flags: Flags, environment: Record<string, string> = {}): readonly string[] {
  try {
    readSettings(flags, environment, { listens: true });
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).isUsage).toBe(true);
    return (error as Refusal).message.split('\n');
  }
}

test('settings have their defaults without flags and variables', () => {
  expect(readSettings({}, {})).toEqual({
    database: { engine: 'sqlite', path: './authrealm.db' },
    migrate: 'auto',
    createsDatabase: true,
    host: '127.0.0.1',
    port: 8080,
    processes: 1,
    drainDelay: 0,
    trustedProxies: [],
    badTokenRate: { requests: 100, seconds: 60 },
    grantRate: { requests: 120, seconds: 120 },
    corsOrigins: [],
    tokenLifetime: 3600,
    passwordCost: { memoryKib: 19_456, passes: 2 },
    offline: false,
    allowPrivate: [],
    retentionDays: 90,
    strictIssuers: false,
    logSignIns: false,
    noConsole: false,
    requestLogging: 'off',
  } as never);
});

test('a setting is read from its variable, and a flag takes precedence', () => {
  expect(readSettings({}, { AUTHREALM_PORT: '9000' }).port).toBe(9000);
  expect(readSettings({ port: '9001' }, { AUTHREALM_PORT: '9000' }).port).toBe(9001);
  for (const { env } of Object.values(SETTINGS)) expect(env).toMatch(/^AUTHREALM_[A-Z_]+$/);
});

test('a secret setting has no flag', () => {
  const secrets = Object.values(SETTINGS).filter((row) => 'secret' in row);
  expect(secrets.map(({ env }) => env)).toEqual(['AUTHREALM_MASTER_KEY']);
  for (const row of secrets) expect('flag' in row).toBe(false);
});

test('all mistakes in settings are reported at once', () => {
  const messages = complaints({ port: '99999', migrate: 'maybe', host: '0.0.0.0' }, { AUTHREALM_PORTS: '1' });
  expect(messages).toHaveLength(5);
  for (const name of ['--port', '--migrate', '--base-url', '--trusted-proxy', 'AUTHREALM_PORTS']) {
    expect(messages.some((line) => line.includes(name))).toBe(true);
  }
});

test('an invalid value is not repeated in the error', () => {
  const messages = complaints(
    { database: 'mysql://user:hunter2@host/db' },
    { AUTHREALM_MASTER_KEY: '' },
  ).join();
  expect(messages).toContain('--database must be a file such as ./authrealm.db, sqlite:PATH, or postgres://');
  expect(messages).toContain('AUTHREALM_MASTER_KEY must be');
  expect(messages).not.toContain('hunter2');
});

describe('values', () => {
  const refused: [keyof typeof SETTINGS, string][] = [
    ['database', 'sqlite:'],
    ['database', 'mysql://x'],
    ['port', '-1'],
    ['port', '80.5'],
    ['port', ''],
    ['processes', '0'],
    ['processes', '65'],
    ['passwordCost', 'low'],
    ['tokenLifetime', '59'],
    ['tokenLifetime', '86401'],
    ['baseUrl', 'id.example'],
    ['baseUrl', 'ftp://id.example'],
    ['baseUrl', 'https://user@id.example'],
    ['baseUrl', 'https://id.example/?x'],
    ['baseUrl', 'https://id.example/#x'],
    ['baseUrl', 'https://id.example/:realm'],
    ['baseUrl', 'https://id.example/a*'],
    ['baseUrl', 'https://id.example/a//b'],
    ['baseUrl', 'https://id.example/a%20b'],
    ['trustedProxies', '10.0.0.1/8'],
    ['trustedProxies', '10.0.0.0/8 proxy.example'],
    ['clientRate', '0/60'],
    ['clientRate', '60/0'],
    ['clientRate', '60'],
    ['clientRate', 'off'],
    ['addressRate', '1.5/60'],
    ['addressRate', '60/100000'],
    ['badTokenRate', ''],
    ['corsOrigins', '*'],
    ['corsOrigins', 'https://shop.example/'],
    ['corsOrigins', 'shop.example'],
    ['requestLogging', 'yes'],
    ['trustedProxies', '0.0.0.0/0'],
    ['trustedProxies', '10.0.0.0/8 ::/0'],
    ['strictIssuers', 'maybe'],
    ['offline', 'constructor'],
    ['host', ''],
    ...(['9464', '127.0.0.1', ':9464', '::1:9464', '[]:9464', '127.0.0.1:65536', 'a b:1'] as const).map(
      (address): [keyof typeof SETTINGS, string] => ['metrics', address],
    ),
  ];
  for (const [name, value] of refused) {
    test(`the setting ${name} rejects "${value}"`, () => {
      const environment = { [SETTINGS[name].env]: value };
      expect(complaints({}, environment)).toHaveLength(1);
    });
  }

  test('metrics are served on a host and a port, which brackets separate from an IPv6 address', () => {
    const addressOf = (metrics: string) => readSettings({ metrics }, {}).metrics;
    expect(addressOf('127.0.0.1:9464')).toEqual({ host: '127.0.0.1', port: 9464 });
    expect(addressOf('metrics.internal:0')).toEqual({ host: 'metrics.internal', port: 0 });
    expect(addressOf('[::1]:9464')).toEqual({ host: '::1', port: 9464 });
  });

  test('a base URL loses its trailing slash and keeps its path prefix', () => {
    expect(readSettings({ baseUrl: 'https://id.example/' }, {}).baseUrl).toBe('https://id.example');
    expect(readSettings({ baseUrl: 'https://id.example/auth/' }, {}).baseUrl).toBe('https://id.example/auth');
  });
});

describe('an address that is not loopback', () => {
  const base = { host: '0.0.0.0', baseUrl: 'https://id.example' };
  const PROXY = '10.0.0.1';
  const rows: [string, Flags, number][] = [
    ['alone', { host: '0.0.0.0' }, 2],
    ['with a base URL', base, 1],
    ['with half of TLS', { ...base, tlsCert: 'c' }, 2],
    ['with TLS', { ...base, tlsCert: 'c', tlsKey: 'k' }, 0],
    ['behind a named proxy', { ...base, trustedProxies: PROXY }, 0],
    ['with a proxy list that is empty', { ...base, trustedProxies: '' }, 1],
    ['with a private target', { ...base, trustedProxies: PROXY, allowPrivate: '10.1.0.0/16' }, 0],
    ['behind a named proxy without a base URL', { host: '10.0.0.1', trustedProxies: PROXY }, 1],
  ];
  for (const [name, flags, count] of rows) {
    test(`a public address ${name}: ${count} mistakes`, () => expect(complaints(flags)).toHaveLength(count));
  }
  test('plain HTTP on a public address needs the network of the proxy, not the word that there is one', () => {
    const messages = complaints(base, { AUTHREALM_BEHIND_PROXY: 'true' });
    expect(messages).toEqual([
      expect.stringContaining('AUTHREALM_BEHIND_PROXY is not a variable of authrealm'),
      expect.stringContaining('--trusted-proxy with the network of the proxy'),
    ]);
  });
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) {
    test(`${host} is a loopback address`, () => {
      expect(complaints({ host })).toEqual([]);
    });
  }

  test('requests by plain HTTP are sent to loopback alone, and only while the service itself listens on loopback', () => {
    const rulesOf = (host: string) => {
      const allowPrivate = 'localhost keycloak.internal keycloak.internal:80';
      const ruleOf = urlRule(readSettings({ host, allowPrivate }, {}));
      return ['http://localhost:8080/', 'https://localhost:8443/', 'http://keycloak.internal/'].map(ruleOf);
    };
    expect(rulesOf('127.0.0.1')).toEqual([undefined, undefined, TARGET_RULE]);
    expect(rulesOf('0.0.0.0')).toEqual([TARGET_RULE, undefined, TARGET_RULE]);
    expect(TARGET_RULE).toContain('--allow-private');
  });
});

test('a command that does not listen accepts a public address without a base URL', () => {
  expect(readSettings({ host: '0.0.0.0' }, {}).host).toBe('0.0.0.0');
});

describe('a PostgreSQL database', () => {
  const database = 'postgres://app@db.example/authrealm';
  const secretly = 'postgres://app:s%40cret@db.example:5433,db2.example/authrealm?sslmode=require';

  test('PostgreSQL addresses of both roles have the files of their passwords', () => {
    const flags = {
      database,
      databasePasswordFile: '/p',
      migrateDatabase: 'postgres://owner@db.example/authrealm',
      migrateDatabasePasswordFile: '/o',
    };
    expect(readSettings(flags, {})).toMatchObject({
      database: { engine: 'postgres', user: 'app', passwordFile: '/p' },
      migrateDatabase: { engine: 'postgres', user: 'owner', passwordFile: '/o' },
    });
    expect(readSettings({ database, processes: '2' }, {}).processes).toBe(2);
  });

  test('a PostgreSQL URL is displayed without its password', () => {
    const environment = { AUTHREALM_DATABASE: secretly, AUTHREALM_MIGRATE_DATABASE: secretly };
    const messages = originsOf({ flags: {}, environment, file: {} });
    expect(messages.filter(({ from }) => from === 'environment').map(({ value }) => value)).toEqual(
      Array(2).fill('postgres://app@db.example:5433,db2.example/authrealm?sslmode=require'),
    );
    expect(readSettings({}, environment).database).toMatchObject({ password: 's@cret' });
    for (const odd of [
      'postgres://:s%40cret@h/d',
      'postgres://a:s%40cret@@h/d',
      'postgres://a:s%40cret:x@h/d',
    ]) {
      expect(urlWithoutPassword(odd)).not.toContain('s%40cret');
    }
  });

  test('a password in a URL on the command line is rejected', () => {
    for (const name of ['database', 'migrateDatabase'] as const) {
      const messages = complaints({ database, [name]: secretly });
      expect(messages).toEqual([expect.stringContaining(`--${SETTINGS[name].flag}-password-file FILE`)]);
      expect(messages.join()).not.toContain('cret@');
    }
  });

  test('an invalid PostgreSQL URL is rejected without repeating it', () => {
    const [message = ''] = complaints({
      database: 'postgres://app:s%40cret@db.example/authrealm?sslmode=prefer',
    });
    expect(message).toStartWith('--database must be postgres://USER');
    expect(message).not.toContain('cret@');
  });

  const rows: [string, Flags, RegExp][] = [
    [
      '--migrate-database with SQLite',
      { migrateDatabase: database },
      /^--migrate-database is for PostgreSQL only/,
    ],
    [
      '--database-password-file with SQLite',
      { databasePasswordFile: 'f' },
      /^--database-password-file is for PostgreSQL only/,
    ],
    [
      '--migrate-database-password-file alone',
      { database, migrateDatabasePasswordFile: 'f' },
      /-password-file needs --migrate-d/,
    ],
    [
      'a SQLite file as --migrate-database',
      { database, migrateDatabase: 'sqlite:./a.db' },
      /^--migrate-database must be postgres/,
    ],
  ];
  for (const [name, flags, pattern] of rows) {
    test(`${name} is rejected`, () => expect(complaints(flags)).toEqual([expect.stringMatching(pattern)]));
  }

  test('a password both in the URL and in a file is rejected', () => {
    const environment = { AUTHREALM_DATABASE: secretly, AUTHREALM_DATABASE_PASSWORD_FILE: 'f' };
    expect(complaints({}, environment)).toEqual([expect.stringMatching(/not in both$/)]);
  });
});

test('settings that contradict each other are rejected', () => {
  expect(complaints({ database: 'sqlite::memory:', processes: '2' })).toHaveLength(1);
  expect(complaints({ masterKeyFile: 'f' }, { AUTHREALM_MASTER_KEY: 'k' })).toHaveLength(1);
});
