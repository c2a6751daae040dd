import { describe, expect, test } from 'bun:test';
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { freshDatabase, openFreshDatabase } from '../support/database.ts';
import { AUTHREALM, runAuthrealm, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** What the command line accepts and refuses, on any engine. */

const run = (...args: string[]) => runAuthrealm([...args]);

test('demo --once prints both records and no command for a service that is gone, and exits with 0', async () => {
  const { stdout, stderr, code } = await runCommand([AUTHREALM, 'demo', '--once']);
  expect(code).toBe(0);
  expect(stdout.match(/^200 OK$/gm)).toHaveLength(2);
  expect(stdout).toContain('"type": "user_authentication_oidc_profile_info"');
  expect(stdout).toContain('"type": "user_authentication_password_profile_info"');
  expect(stdout).not.toMatch(/curl|Try it yourself/);
  expect(stderr).toBe('');
});

test('a repeated flag of a list adds its values, and one network of all addresses refuses them all', async () => {
  const flags = ['--database', join(freshFolder(), 'a.db'), '--trusted-proxy', '10.0.0.1'];
  const { stdout } = await run('doctor', ...flags, '--trusted-proxy', '2001:db8::/32');
  expect(stdout).toContain('AUTHREALM_TRUSTED_PROXY = 10.0.0.1 2001:db8::/32 (flag)');
  const { stderr, code } = await run('doctor', ...flags, '--trusted-proxy', '0.0.0.0/0');
  expect([code, stderr]).toEqual([2, expect.stringContaining('--trusted-proxy must be networks')]);
});

describe('client', async () => {
  const { args: words } = await freshDatabase();
  const realm = '01234567-89ab-cdef-0123-456789abcdef';

  const storefront = ['create', '--name', 'p', '--scope', 'users:read', '--implicit', 'settings:read'];
  const invalidCalls: [string, string[], number, RegExp][] = [
    [
      'an unknown scope',
      ['create', '--name', 'n', '--scope', 'x:read'],
      2,
      /--scope, value 1: must be one of /,
    ],
    ['an empty scope', ['create', '--name', 'n', '--scope', ' '], 2, /--scope: must have at least 1/],
    [
      'the scope admin for one realm',
      ['create', '--name', 'n', '--scope', 'admin', '--realm', realm],
      1,
      /reaches every realm/,
    ],
    [
      'a name with a control character',
      ['create', '--name', 'a\u001b[2Jb', '--scope', 'admin'],
      2,
      /--name: must hold no control character/,
    ],
    [
      'an ID alone of all realms',
      [...storefront, '--rate-per-address', '5/60'],
      1,
      /--implicit-realm: the ID alone needs named realms/,
    ],
    [
      'an ID alone without a rate',
      [...storefront, '--realm', realm],
      1,
      /--rate-per-address: the ID alone needs a rate per address/,
    ],
    [
      'a storefront that is no network',
      [...storefront, '--realm', realm, '--rate-per-address', '5/60', '--storefront', '0.0.0.0/0'],
      2,
      /--storefront, value 1: must be an IP address, or a network in CIDR notation that is not all addresses/,
    ],
    ['a blank name', ['update', 'nobody', '--name', ' '], 2, /--name: must not be blank/],
    ['an update without changes', ['update', 'nobody'], 2, /nothing to change/],
    ['an overlap that is not a number', ['rotate', 'nobody', '--overlap', 'long'], 2, /number of hours/],
  ];
  for (const [name, args, code, sentence] of invalidCalls) {
    test(`client refuses ${name}`, async () => {
      const result = await run('client', ...args, ...words);
      expect([result.code, result.stdout]).toEqual([code, '']);
      expect(result.stderr).toMatch(sentence);
    });
  }
});

const DELETE_KEY_CHECKS = 'begin delete from keyring; end';

/** What makes the key check vanish while a command runs, as a completed change of the master key does. */
const MASTER_KEY_CHANGES: [verb: string, ...statements: string[]][] = [
  [
    'rotate',
    // The secret of the log is created after the master key was verified.
    'delete from act',
    'delete from instance_secret',
    `create trigger changed after insert on instance_secret ${DELETE_KEY_CHECKS}`,
  ],
  ['withdraw', `create trigger changed after update on signing_key ${DELETE_KEY_CHECKS}`],
];
test.each(MASTER_KEY_CHANGES)(
  'keys %s while the master key is changed prints what to do next, and changes no key',
  async (verb, ...statements) => {
    const { database, db } = await openFreshDatabase();
    await db.engine.close();
    const keys = () => database.query<{ kid: string }>('select * from signing_key');
    const before = await keys();
    for (const sql of statements) await database.tamper(sql);
    const words = verb === 'withdraw' ? [verb, before[0]?.kid ?? ''] : [verb];
    const { code, stdout, stderr } = await run('keys', ...words, ...database.args);
    const sentence =
      'authrealm: the master key was changed, and nothing was written: run this again with the present master key\n';
    expect([code, stdout, stderr]).toEqual([1, '', sentence]);
    expect(await keys()).toEqual(before);
  },
);

describe('the command line', () => {
  const rows: [string[], number, RegExp][] = [
    [['--help'], 0, /Exit codes/],
    [['--version'], 0, /^\d+\.\d+\.\d+/],
    [[], 2, /Usage/],
  ];
  for (const [args, code, text] of rows) {
    test(`"${['authrealm', ...args].join(' ')}" exits with ${code}`, async () => {
      const result = await run(...args);
      expect(result.code).toBe(code);
      expect(result.stdout + result.stderr).toMatch(text);
    });
  }

  test('a variable that is no setting is a mistake, also one named after an option', async () => {
    const { args } = await freshDatabase();
    for (const name of ['AUTHREALM_CLIENT_LIST_JSON', 'AUTHREALM_PROT']) {
      const { code, stderr } = await runAuthrealm(['client', 'list', ...args], { [name]: 'true' });
      expect([code, stderr]).toEqual([2, expect.stringContaining(`${name} is not a variable of authrealm`)]);
    }
  });

  test('the launcher works through a symbolic link, from any folder, without bun on the PATH', async () => {
    const folder = freshFolder();
    const link = join(folder, 'linked');
    symlinkSync(AUTHREALM, link);
    chmodSync(AUTHREALM, 0o755);
    const result = await runCommand(['sh', '-c', `cd / && ${link} --version`], { PATH: '/usr/bin:/bin' });
    expect([result.code, result.stderr]).toEqual([0, '']);
  });
});
