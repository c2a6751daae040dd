import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../src/model/limits.ts';
import { RESOURCES, realm, user } from '../../src/model/resources.ts';
import { freshDatabase } from '../support/database.ts';
import { realmLines } from '../support/import_fixtures.ts';
import { storedId, storedRealm } from '../support/log_rows.ts';
import { populationLines } from '../support/population.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { FULL_SCOPE } from '../support/resource_cases.ts';
import { checkedResponse, errorsOf, freshFolder } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** `authrealm delete --in-pages` while a service runs: killed in every page, and completed. */

const USERS = 2_000;
const PAGE = LIMITS.cascadeRecordsMax;
/** About as long as a page takes: a kill comes at any moment of one. */
const MS_OF_A_PAGE = 40;
const small = realmLines();

const database = await freshDatabase();
const service = await startServiceProcess({ database, scope: FULL_SCOPE });
const token = await service.token();
const file = join(freshFolder(), 'lines.ndjson');
const many = [...populationLines(USERS)].join('\n');
const largeRealm = JSON.parse(many.slice(0, many.indexOf('\n'))).id;
writeFileSync(file, [many, ...small.all.map((line) => JSON.stringify(line))].join('\n'));
const imported = await runCommand([AUTHREALM, 'import', file, ...database.args]);
expect([imported.code, imported.stderr]).toEqual([0, '']);
afterAll(async () => {
  expect(await service.running.stop()).toBe(0);
});

const deleteInPages = (...args: string[]) =>
  runCommand([AUTHREALM, 'delete', '--in-pages', '--yes', ...args, ...database.args]);

async function call(method: string, below: string, data?: object): Promise<Response> {
  const answer = await fetch(`${service.url}/v2/authentication-realms${below}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(data ? { body: JSON.stringify({ data }) } : {}),
  });
  return checkedResponse(answer, [token]);
}

/** The number of records of a realm, including the realm. */
async function recordsOf(id: string, ask = database.query): Promise<number> {
  const { engine } = database.address;
  const counts = RESOURCES.map(
    ({ table, parent }) =>
      `(select count(*) from ${table} where realm_id = ${(parent ? storedRealm : storedId)(engine, '?1')})`,
  );
  const [row] = await ask<{ n: number }>(`select ${counts.join(' + ')} as n`, id);
  return row?.n ?? 0;
}

describe('a realm with more records than the limit of a removal', () => {
  const jane = { type: user.type, name: 'Jane Doe', email: 'jane@example.com' };

  test('DELETE of a realm with too many records is 422 with the command', async () => {
    expect(await recordsOf(largeRealm)).toBeGreaterThan(2 * USERS);
    const refused = await call('DELETE', `/${largeRealm}`);
    expect([refused.status, (await errorsOf(refused))[0]?.detail]).toEqual([
      422,
      'data.id: more than 1000 records would go with this one: authrealm delete --in-pages removes them',
    ]);
    expect((await call('GET', `/${largeRealm}`)).status).toBe(200);
    expect((await call('POST', `/${largeRealm}/user-authentication-info`, jane)).status).toBe(201);
  });

  test('a deletion that is killed in each of its pages leaves no fault, and what is left is served as it is', async () => {
    const seed = freshSeed();
    console.log(`seed ${seed}`);
    const chance = seededRandom(seed);
    let kills = 0;
    for (let left = await recordsOf(largeRealm); left > 2 * PAGE; kills += 1) {
      await killDeletionAfter(left, chance() * MS_OF_A_PAGE);
      const remaining = await recordsOf(largeRealm);
      expect([remaining > 1, (left - remaining) % PAGE]).toEqual([true, 0]);
      expect(await database.findInconsistencies()).toEqual([]);
      await expectServed();
      left = remaining + 1;
    }
    expect(kills).toBeGreaterThan(2);
    const remaining = await recordsOf(largeRealm);
    expect(await deleteInPages('realm', largeRealm)).toEqual({
      stdout: `deleted ${remaining} records\n`,
      stderr: expect.stringContaining(
        `authrealm: deleting ${remaining} records in commits of ${PAGE}; what is left can be read and written`,
      ),
      code: 0,
    });
    expect(await recordsOf(largeRealm)).toBe(0);
    await expectAbsent();
    expect(await database.findInconsistencies()).toEqual([]);
    const again = await deleteInPages('realm', largeRealm);
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringMatching(/^authrealm: no such record: .+\n$/),
    ]);
  }, 300_000);

  /** Runs a deletion and kills it so many milliseconds after it has deleted a page of the `before` records. */
  async function killDeletionAfter(before: number, ms: number): Promise<void> {
    const { process: child } = startCommand([
      ...[AUTHREALM, 'delete', '--in-pages', '--yes', 'realm', largeRealm, ...database.args],
    ]);
    const { ask, close } = database.connect();
    while ((await recordsOf(largeRealm, ask)) === before && child.exitCode === null) await Bun.sleep(5);
    await Bun.sleep(ms);
    child.kill('SIGKILL');
    await child.exited;
    await close();
    expect(child.signalCode).toBe('SIGKILL');
  }

  /** Expects that what is left can be read and written; this creates a user. */
  async function expectServed(): Promise<void> {
    const below = `/${largeRealm}/user-authentication-info`;
    const listed = (await (await call('GET', below)).json()) as { data: { id: string }[] };
    for (const [answer, status] of [
      [await call('GET', `/${largeRealm}`), 200],
      [await call('PUT', `/${largeRealm}`, { type: realm.type, name: 'Again' }), 200],
      [await call('GET', `${below}/${listed.data[0]?.id}`), 200],
      [await call('POST', below, jane), 201],
    ] as const)
      expect(answer.status).toBe(status);
  }

  async function expectAbsent(): Promise<void> {
    const below = `/${largeRealm}/user-authentication-info`;
    for (const answer of [
      await call('GET', `/${largeRealm}`),
      await call('DELETE', `/${largeRealm}`),
      await call('GET', below),
      await call('POST', below, jane),
    ])
      expect(answer.status).toBe(404);
    const listed = (await (await call('GET', '')).json()) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toEqual([small.ids.realm]);
  }
});

describe('a deletion in pages of a single record', () => {
  test('a deletion in pages removes the record and its dependents, and nothing else', async () => {
    const { ids } = small;
    const removed = async (...args: string[]) => (await deleteInPages(...args)).stdout;
    expect(await removed('user-authentication-oidc-profile-info', ids.realm, ids.user, ids.link)).toBe(
      'deleted 1 record\n',
    );
    expect(await removed('password-profile', ids.realm, ids.passwords.toUpperCase())).toBe(
      'deleted 2 records\n',
    );
    expect(await recordsOf(ids.realm)).toBe(3);
    expect((await call('GET', `/${ids.realm}/user-authentication-info/${ids.user}`)).status).toBe(200);
    expect(await database.findInconsistencies()).toEqual([]);
    expect(await verifyCleanRecords(database)).toMatchObject({ notCovered: 0 });
  });

  const UUID = '00000000-0000-4000-8000-000000000001';
  const WRONG: [args: string[], code: number, reason: string][] = [
    [['phone', UUID], 2, 'the resource must be one of realm, oidc-profile, '],
    [['realm'], 2, "missing required argument 'id'"],
    [['realm', 'shop'], 2, 'expected REALM_ID after "realm": an ID is 8-4-4-4-12 in hex, '],
    [['realm', UUID, UUID], 2, 'expected REALM_ID after "realm": an ID is 8-4-4-4-12 in hex, '],
    [['user-info', UUID], 2, 'expected REALM_ID ID after "user-info": an ID is 8-4-4-4-12 in hex, '],
    [['user-info', UUID, 'jane'], 2, 'expected REALM_ID ID after "user-info": an ID is 8-4-4-4-12 in hex, '],
    [['realm', UUID], 1, 'no such record'],
    [
      ['realm', UUID, '--if-match', '"1"'],
      2,
      "option '--in-pages' cannot be used with option '--if-match <ETAG>'",
    ],
    [['realm', UUID, '--url', 'http://localhost'], 2, "cannot be used with option '--url <URL>'"],
    [['user-info', UUID, small.ids.user], 1, 'no such record'],
    [['oidc-profile', small.ids.realm, small.ids.user], 1, 'no such record'],
  ];

  test.each(WRONG)('delete --in-pages %j is refused and removes nothing', async (args, code, reason) => {
    const before = await recordsOf(small.ids.realm);
    const result = await deleteInPages(...args);
    expect([result.code, result.stdout, result.stderr]).toEqual([code, '', expect.stringContaining(reason)]);
    expect(result.stderr).not.toMatch(/\bat \w+.*\.ts:/);
    expect(await recordsOf(small.ids.realm)).toBe(before);
  });

  test('delete --in-pages creates no database', async () => {
    const words = [AUTHREALM, 'delete', '--in-pages', '--yes', 'realm', UUID];
    const deleteFrom = (url: string) => runCommand([...words, '--database', url]);
    const missing = join(freshFolder(), 'missing.db');
    const result = await deleteFrom(`sqlite:${missing}`);
    expect([result.code, result.stderr]).toEqual([
      1,
      expect.stringContaining(`authrealm: the database ${missing} is missing or empty: pass `),
    ]);
    expect(existsSync(missing)).toBe(false);
    expect((await deleteFrom('sqlite::memory:')).code).toBe(1);
  });
});
