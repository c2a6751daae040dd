import { describe, expect, test } from 'bun:test';
import { type Flags, originsOf, readSettings, SETTINGS } from '../../src/config/parse.ts';
import { Refusal } from '../../src/domain/fault.ts';
import { urlWithoutPassword } from '../../src/store/open.ts';

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

test('nothing said: loopback, one process, a file beside', () => {
  expect(readSettings({}, {})).toEqual({
    database: { engine: 'sqlite', path: './authrealm.db' },
    migrate: 'auto',
    host: '127.0.0.1',
    port: 8080,
    processes: 1,
    behindProxy: false,
    trustedProxies: [],
    forwardedHeader: 'x-forwarded-for',
    badTokenRate: { requests: 100, seconds: 60 },
    corsOrigins: [],
    tokenLifetime: 3600,
    passwordMemory: 19_456,
    passwordPasses: 2,
    pageLength: 25,
    offline: false,
    allowLoopbackDiscovery: false,
    allowLoopbackWebhooks: false,
    retentionDays: 90,
    strictIssuers: false,
    noConsole: false,
    consoleClientCredentials: false,
    metricsHost: '127.0.0.1',
    requestLogging: 'off',
  } as never);
});

test('every setting can be given by the environment; a flag wins', () => {
  expect(readSettings({}, { AUTHREALM_PORT: '9000' }).port).toBe(9000);
  expect(readSettings({ port: '9001' }, { AUTHREALM_PORT: '9000' }).port).toBe(9001);
  for (const { env } of Object.values(SETTINGS)) expect(env).toMatch(/^AUTHREALM_[A-Z_]+$/);
});

test('secrets have no flag', () => {
  const secrets = Object.values(SETTINGS).filter((row) => 'secret' in row);
  expect(secrets.map(({ env }) => env)).toEqual(['AUTHREALM_MASTER_KEY']);
  for (const row of secrets) expect('flag' in row).toBe(false);
});

test('all mistakes are told at once', () => {
  const told = complaints({ port: '99999', migrate: 'maybe', host: '0.0.0.0' }, { AUTHREALM_PORTS: '1' });
  expect(told).toHaveLength(5);
  for (const name of ['--port', '--migrate', '--base-url', '--behind-proxy', 'AUTHREALM_PORTS']) {
    expect(told.some((line) => line.includes(name))).toBe(true);
  }
});

test('a value is never repeated', () => {
  const told = complaints({ database: 'mysql://user:hunter2@host/db' }, { AUTHREALM_MASTER_KEY: '' }).join();
  expect(told).toContain('--database must be sqlite:PATH');
  expect(told).toContain('AUTHREALM_MASTER_KEY must be');
  expect(told).not.toContain('hunter2');
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
    ['forwardedHeader', 'X-Real-IP'],
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
    ['behindProxy', 'maybe'],
    ['offline', 'constructor'],
    ['host', ''],
  ];
  for (const [name, value] of refused) {
    test(`${name} refuses "${value}"`, () => {
      const environment = { [SETTINGS[name].env]: value };
      expect(complaints({}, environment)).toHaveLength(1);
    });
  }

  test('a base URL loses the slash at its end and keeps its prefix', () => {
    expect(readSettings({ baseUrl: 'https://id.example/' }, {}).baseUrl).toBe('https://id.example');
    expect(readSettings({ baseUrl: 'https://id.example/auth/' }, {}).baseUrl).toBe('https://id.example/auth');
  });
});

describe('an address that is not loopback', () => {
  const base = { host: '0.0.0.0', baseUrl: 'https://id.example' };
  const rows: [string, Flags, number][] = [
    ['alone', { host: '0.0.0.0' }, 2],
    ['with a base URL', base, 1],
    ['with half of TLS', { ...base, tlsCert: 'c' }, 2],
    ['with TLS', { ...base, tlsCert: 'c', tlsKey: 'k' }, 0],
    ['behind a proxy', { ...base, behindProxy: 'true' }, 0],
    ['with discovery on loopback', { ...base, behindProxy: 'true', allowLoopbackDiscovery: 'true' }, 1],
    ['behind a proxy without a base URL', { host: '10.0.0.1', behindProxy: 'true' }, 1],
  ];
  for (const [name, flags, count] of rows) {
    test(name, () => expect(complaints(flags)).toHaveLength(count));
  }
  test('with discovery on loopback says what to do', () => {
    const [complaint] = complaints(
      { ...base, behindProxy: 'true' },
      { AUTHREALM_ALLOW_LOOPBACK_DISCOVERY: '1' },
    );
    expect(complaint).toBe(
      '--host 0.0.0.0 is not loopback: with --allow-loopback-discovery whoever creates profiles could have what ' +
        'listens on this machine alone be asked. Leave it out, or listen on loopback',
    );
  });
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) {
    test(`${host} is loopback`, () => {
      expect(complaints({ host, allowLoopbackDiscovery: 'true' })).toEqual([]);
    });
  }
});

test('a command that does not listen is not asked what an address needs', () => {
  expect(readSettings({ host: '0.0.0.0' }, {}).host).toBe('0.0.0.0');
});

describe('a PostgreSQL database', () => {
  const database = 'postgres://app@db.example/authrealm';
  const secretly = 'postgres://app:s%40cret@db.example:5433,db2.example/authrealm?sslmode=require';

  test('is known with the file of its password, and so is the one of the role that owns it', () => {
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

  test('is never told with its password', () => {
    const environment = { AUTHREALM_DATABASE: secretly, AUTHREALM_MIGRATE_DATABASE: secretly };
    const told = originsOf({}, environment);
    expect(told.filter(({ from }) => from === 'environment').map(({ value }) => value)).toEqual(
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

  test('takes no password from the command line, where others read it', () => {
    for (const name of ['database', 'migrateDatabase'] as const) {
      const told = complaints({ database, [name]: secretly });
      expect(told).toEqual([expect.stringContaining(`--${SETTINGS[name].flag}-password-file FILE`)]);
      expect(told.join()).not.toContain('cret@');
    }
  });

  test('is complained about without what was written', () => {
    const [told = ''] = complaints({
      database: 'postgres://app:s%40cret@db.example/authrealm?sslmode=prefer',
    });
    expect(told).toStartWith('--database must be postgres://USER');
    expect(told).not.toContain('cret@');
  });

  const rows: [string, Flags, RegExp][] = [
    [
      'an owner of a file',
      { migrateDatabase: database },
      /^--migrate-database goes with a PostgreSQL database/,
    ],
    [
      'a password of a file',
      { databasePasswordFile: 'f' },
      /^--database-password-file goes with a PostgreSQL/,
    ],
    [
      'a password of no owner',
      { database, migrateDatabasePasswordFile: 'f' },
      /goes together with --migrate-d/,
    ],
    [
      'a file as the owner',
      { database, migrateDatabase: 'sqlite:./a.db' },
      /^--migrate-database must be postgres/,
    ],
  ];
  for (const [name, flags, told] of rows) {
    test(`${name} is refused`, () => expect(complaints(flags)).toEqual([expect.stringMatching(told)]));
  }

  test('two passwords are refused', () => {
    const environment = { AUTHREALM_DATABASE: secretly, AUTHREALM_DATABASE_PASSWORD_FILE: 'f' };
    expect(complaints({}, environment)).toEqual([expect.stringMatching(/exclude each other$/)]);
  });
});

test('what does not go together is refused', () => {
  expect(complaints({ database: 'sqlite::memory:', processes: '2' })).toHaveLength(1);
  expect(complaints({ masterKeyFile: 'f' }, { AUTHREALM_MASTER_KEY: 'k' })).toHaveLength(1);
});
