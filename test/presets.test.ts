import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { disagreements } from '../prove/agreement.ts';
import { doctor } from './checkup.ts';
import { FULL_SCOPE } from './family.ts';
import { freshFolder } from './kit.ts';
import { AUTHREALM, clientCreate, runCommand } from './processes.ts';
import { startServed } from './served.ts';

/** `init --preset-realms`: the three realms that clients of the family expect (contract 8, row 31). */

const PRESETS = [
  ['Buyer Organization', 'customer-authentication-settings'],
  ['Merchant Organization', 'merchant-realm-mappings'],
  ['Account Management Realm', 'account_authentication_settings'],
] as const;
const NAMES = PRESETS.map(([name]) => name);

const fresh = () => join(freshFolder(), 'preset.db');
const run = (path: string, ...words: string[]) =>
  runCommand([AUTHREALM, ...words, '--database', `sqlite:${path}`]);
const init = (path: string, ...words: string[]) => run(path, 'init', ...words);

function rows<T>(path: string, sql: string): T[] {
  const db = new Database(path, { readonly: true });
  try {
    return db.query<T, []>(sql).all();
  } finally {
    db.close();
  }
}

interface RealmRow {
  readonly id: string;
  readonly name: string;
  readonly redirect_uris: string;
  readonly duplicate_email_policy: string;
  readonly origin: string;
  readonly preset: number;
  readonly created_at: number;
}

const realmsOf = (path: string) =>
  rows<RealmRow>(path, 'select realm_id as id, * from realm order by created_at, realm_id');

/** The three as the contract has them, in their order and a millisecond apart. */
function expectPresets(path: string, realms = realmsOf(path)): void {
  const [{ store } = { store: '' }] = rows<{ store: string }>(path, 'select store_id as store from instance');
  const start = realms[0]?.created_at ?? 0;
  expect(realms.map(({ id: _, ...rest }) => rest)).toEqual(
    PRESETS.map(([name, type], index) =>
      expect.objectContaining({
        ...{ name, redirect_uris: '[]', duplicate_email_policy: 'allowed', preset: 1 },
        ...{ origin: JSON.stringify({ data: { id: store, type } }), created_at: start + index },
      }),
    ),
  );
}

test('a new database begins with the three, its profile and its client in the last of them', async () => {
  const path = fresh();
  const { code, stdout, stderr } = await init(path, '--preset-realms');
  expect(code).toBe(0);
  expect(stderr).not.toContain('authrealm:');
  expectPresets(path);
  const realms = realmsOf(path);
  for (const { id, name } of realms) expect(stdout).toContain(`${id}  ${name}\n`);
  const account = realms[2]?.id ?? '';
  expect(stdout).toContain(`realm             ${account}\n`);
  expect(stdout).not.toContain('Default realm');
  expect(rows(path, 'select realm_id, name from password_profile')).toEqual([
    { realm_id: account, name: 'Passwords' },
  ]);
  expect(rows(path, 'select realm_id from client_realm')).toEqual([{ realm_id: account }]);
  expect(disagreements(path)).toEqual([]);
  expect((await doctor(path)).healthy).toBe(true);

  const before = rows(path, 'select * from change');
  const again = await init(path, '--preset-realms');
  expect([again.code, again.stderr]).toEqual([0, '']);
  expect(again.stdout).toBe(realms.map(({ id, name }) => `${id}  ${name} (was there)\n`).join(''));
  expect(rows(path, 'select * from change')).toEqual(before);
  expect(rows(path, 'select * from client')).toHaveLength(1);
});

test('a database in use gets the realms, and nothing else', async () => {
  const path = fresh();
  expect((await init(path)).code).toBe(0);
  const before = rows(path, 'select * from password_profile, client');
  const { code, stdout } = await init(path, '--preset-realms');
  expect(code).toBe(0);
  expect(stdout.trim().split('\n')).toHaveLength(PRESETS.length);
  expect(realmsOf(path).map(({ name }) => name)).toEqual(['Default realm', ...NAMES]);
  expectPresets(path, realmsOf(path).slice(1));
  expect(rows(path, 'select * from password_profile, client')).toEqual(before);
  const refused = await init(path);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has clients already')]);
});

test('twenty that make them at once make three, in their order', async () => {
  const path = fresh();
  expect((await clientCreate(path, FULL_SCOPE)).code).toBe(0);
  const ended = await Promise.all(Array.from({ length: 20 }, () => init(path, '--preset-realms')));
  expect(ended.map(({ code }) => code)).toEqual(Array(20).fill(0));
  // Exactly one of them made them, all three.
  expect(ended.filter(({ stdout }) => !stdout.includes('(was there)'))).toHaveLength(1);
  expectPresets(path);
  expect(rows(path, 'select event from change')).toHaveLength(PRESETS.length);
  expect(disagreements(path)).toEqual([]);
}, 60_000);

test('one that is missing is made again, in its place', async () => {
  const path = fresh();
  expect((await init(path, '--preset-realms')).code).toBe(0);
  const before = realmsOf(path);
  const db = new Database(path);
  db.run(`delete from realm where name = 'Merchant Organization'`);
  db.close();
  const { code, stdout } = await init(path, '--preset-realms');
  expect([code, stdout.split('\n').filter((line) => line.endsWith('(was there)'))]).toEqual([
    0,
    [before[0], before[2]].map((each) => `${each?.id}  ${each?.name} (was there)`),
  ]);
  expect(
    realmsOf(path)
      .map(({ id }) => id)
      .sort(),
  ).toEqual(before.map(({ id }) => id).sort());
});

describe('they stay', () => {
  test('for a DELETE and for a purge', async () => {
    const path = fresh();
    const served = await startServed({ path, scope: FULL_SCOPE });
    expect((await init(path, '--preset-realms')).code).toBe(0);
    const headers = { Authorization: `Bearer ${await served.token()}` };
    const list = await fetch(`${served.url}/v2/authentication-realms`, { headers });
    const { data } = (await list.json()) as { data: { id: string; name: string; relationships: unknown }[] };
    // The newest stands first.
    expect(data.map(({ name }) => name)).toEqual(NAMES.toReversed());
    expect(JSON.stringify(data)).not.toContain('"preset"');
    for (const { id } of data) {
      const removed = await fetch(`${served.url}/v2/authentication-realms/${id}`, {
        method: 'DELETE',
        headers,
      });
      expect([removed.status, await removed.text()]).toEqual([422, expect.stringContaining('is kept')]);
      const purged = await run(path, 'purge', 'realm', id);
      expect([purged.code, purged.stderr]).toEqual([
        1,
        'authrealm: this record is kept and cannot be removed\n',
      ]);
    }
    expectPresets(path);
    expect(rows(path, 'select * from purge')).toEqual([]);
    expect(await served.running.stop()).toBe(0);
  });

  test('preset in the database that an export is brought to', async () => {
    const path = fresh();
    expect((await init(path, '--preset-realms')).code).toBe(0);
    const file = join(freshFolder(), 'realms.ndjson');
    expect((await run(path, 'export', file)).code).toBe(0);
    expect(readFileSync(file, 'utf8').split('\n')[0]).toContain('"preset":true');
    const other = fresh();
    expect((await run(other, 'import', file)).code).toBe(0);
    const kept = (of: string) => realmsOf(of).map(({ id, origin, preset }) => ({ id, origin, preset }));
    expect(kept(other)).toEqual(kept(path));
    const [{ id } = { id: '' }] = realmsOf(other);
    const purged = await run(other, 'purge', 'realm', id);
    expect([purged.code, purged.stderr]).toEqual([1, expect.stringContaining('is kept')]);
    expect(realmsOf(other)).toHaveLength(PRESETS.length);
    expect(existsSync(`${other}.key`)).toBe(true);
  });
});
