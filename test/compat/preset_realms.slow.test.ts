import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { idText, realmText } from '../support/log_rows.ts';
import { runAuthrealm, runClientCreate } from '../support/processes.ts';
import { FULL_SCOPE } from '../support/resource_cases.ts';
import { freshFolder } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** `init --preset-realms`: the three realms that existing clients expect (docs/wire.md#realms). */

const PRESETS = [
  ['Buyer Organization', 'customer-authentication-settings'],
  ['Merchant Organization', 'merchant-realm-mappings'],
  ['Account Management Realm', 'account_authentication_settings'],
] as const;
const NAMES = PRESETS.map(([name]) => name);

/** The end of the message of a run that waited too long for the others. */
const TEMPORARY = /try again$/m;

const run = ({ args: on }: TestDatabase, ...words: string[]) => runAuthrealm([...words, ...on]);
const init = (database: TestDatabase, ...words: string[]) => run(database, 'init', ...words);

interface RealmRow {
  readonly id: string;
  readonly name: string;
  readonly redirect_uris: string;
  readonly duplicate_email_policy: string;
  readonly origin: string;
  readonly preset: number;
  readonly created_at: number;
}

const realmsOf = (database: TestDatabase) =>
  database.query<RealmRow>(
    `select ${idText(database.address.engine, 'realm_id')} as id, * from realm order by created_at, realm_id`,
  );

/** Expects the three preset realms, in their order and a millisecond apart. */
async function expectPresets(database: TestDatabase, from = 0): Promise<void> {
  const realms = (await realmsOf(database)).slice(from);
  const [{ store } = { store: '' }] = await database.query<{ store: string }>(
    'select store_id as store from instance',
  );
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

test('init --preset-realms creates the three realms, with the profile and client in the last; repeated, nothing', async () => {
  const database = await freshDatabase();
  const { code, stdout, stderr } = await init(database, '--preset-realms');
  expect(code).toBe(0);
  expect(stderr).not.toContain('authrealm:');
  await expectPresets(database);
  const realms = await realmsOf(database);
  for (const { id, name } of realms) expect(stdout).toContain(`${id}  ${name}\n`);
  const account = realms[2]?.id ?? '';
  expect(stdout).toContain(`realm             ${account}\n`);
  expect(stdout).not.toContain('Default realm');
  expect(
    await database.query(
      `select ${realmText(database.address.engine, 'password_profile')} as realm_id, name from password_profile`,
    ),
  ).toEqual([{ realm_id: account, name: 'Passwords' }]);
  expect(await database.query('select realm_id from client_realm')).toEqual([{ realm_id: account }]);
  expect(await database.findInconsistencies()).toEqual([]);
  expect((await runDoctorOn(database)).healthy).toBe(true);

  const before = await database.queryChanges('select * from change order by realm_id, seq');
  const again = await init(database, '--preset-realms');
  expect([again.code, again.stderr]).toEqual([0, '']);
  expect(again.stdout).toBe(realms.map(({ id, name }) => `${id}  ${name} (exists)\n`).join(''));
  expect(await database.queryChanges('select * from change order by realm_id, seq')).toEqual(before);
  expect(await database.query('select * from client')).toHaveLength(1);
});

test('init --preset-realms adds only the realms to a database in use', async () => {
  const database = await freshDatabase();
  expect((await init(database)).code).toBe(0);
  const before = await database.query('select * from password_profile, client');
  const { code, stdout } = await init(database, '--preset-realms');
  expect(code).toBe(0);
  expect(stdout.trim().split('\n')).toHaveLength(PRESETS.length);
  expect((await realmsOf(database)).map(({ name }) => name)).toEqual(['Default realm', ...NAMES]);
  await expectPresets(database, 1);
  expect(await database.query('select * from password_profile, client')).toEqual(before);
  const refused = await init(database);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('already has clients')]);
});

/** `init --preset-realms`, repeated while the other runs take longer than a run waits, as on a slow disk. */
async function initRepeatedly(database: TestDatabase): ReturnType<typeof init> {
  const result = await init(database, '--preset-realms');
  return result.code !== 0 && TEMPORARY.test(result.stderr) ? initRepeatedly(database) : result;
}

test('twenty concurrent runs of init --preset-realms create three realms, in order', async () => {
  const database = await freshDatabase();
  expect((await runClientCreate(database, FULL_SCOPE)).code).toBe(0);
  const runs = await Promise.all(Array.from({ length: 20 }, () => initRepeatedly(database)));
  expect(runs.filter(({ code }) => code !== 0).map(({ stderr }) => stderr)).toEqual([]);
  // Exactly one run created them, all three.
  expect(runs.filter(({ stdout }) => !stdout.includes('(exists)'))).toHaveLength(1);
  await expectPresets(database);
  expect(await database.queryChanges('select event from change')).toHaveLength(PRESETS.length);
  expect(await database.findInconsistencies()).toEqual([]);
}, 300_000);

test('init --preset-realms creates a missing preset realm again, with its ID', async () => {
  const database = await freshDatabase();
  expect((await init(database, '--preset-realms')).code).toBe(0);
  const before = await realmsOf(database);
  await database.query(`delete from realm where name = 'Merchant Organization'`);
  const { code, stdout } = await init(database, '--preset-realms');
  expect([code, stdout.split('\n').filter((line) => line.endsWith('(exists)'))]).toEqual([
    0,
    [before[0], before[2]].map((each) => `${each?.id}  ${each?.name} (exists)`),
  ]);
  expect((await realmsOf(database)).map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
});

describe('preset realms', () => {
  test('preset realms reject DELETE, also in pages', async () => {
    const database = await freshDatabase();
    const served = await startServiceProcess({ database, scope: FULL_SCOPE });
    expect((await init(database, '--preset-realms')).code).toBe(0);
    const headers = { Authorization: `Bearer ${await served.token()}` };
    const list = await fetch(`${served.url}/v2/authentication-realms`, { headers });
    const { data } = (await list.json()) as { data: { id: string; name: string; relationships: unknown }[] };
    // The newest is first.
    expect(data.map(({ name }) => name)).toEqual(NAMES.toReversed());
    expect(JSON.stringify(data)).not.toContain('"preset"');
    for (const { id } of data) {
      const removed = await fetch(`${served.url}/v2/authentication-realms/${id}`, {
        method: 'DELETE',
        headers,
      });
      expect([removed.status, await removed.text()]).toEqual([422, expect.stringContaining('is kept')]);
      const inPages = await run(database, 'delete', '--in-pages', '--yes', 'realm', id);
      expect([inPages.code, inPages.stderr]).toEqual([
        1,
        'authrealm: this record is protected and cannot be deleted\n',
      ]);
    }
    await expectPresets(database);
    expect(await served.running.stop()).toBe(0);
  });

  test('imported preset realms are preset in the new database', async () => {
    const database = await freshDatabase();
    expect((await init(database, '--preset-realms')).code).toBe(0);
    const file = join(freshFolder(), 'realms.ndjson');
    expect((await run(database, 'export', file)).code).toBe(0);
    expect(readFileSync(file, 'utf8').split('\n')[0]).toContain('"preset":true');
    const other = await freshDatabase();
    expect((await run(other, 'import', file)).code).toBe(0);
    const presetsOf = async (of: TestDatabase) =>
      (await realmsOf(of)).map(({ id, origin, preset }) => ({ id, origin, preset }));
    expect(await presetsOf(other)).toEqual(await presetsOf(database));
    const [{ id } = { id: '' }] = await realmsOf(other);
    const inPages = await run(other, 'delete', '--in-pages', '--yes', 'realm', id);
    expect([inPages.code, inPages.stderr]).toEqual([1, expect.stringContaining('is protected')]);
    expect(await realmsOf(other)).toHaveLength(PRESETS.length);
    expect(existsSync(other.masterKeyFile)).toBe(true);
  });
});
