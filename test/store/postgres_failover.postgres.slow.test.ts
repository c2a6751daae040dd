import { afterAll, beforeAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { databaseBy, reachedBy, startTroubled, type Troubled } from '../support/fault_injection.ts';
import { userPath } from '../support/resource_cases.ts';
import { type Pair, startPair } from '../support/standby.ts';

/** A service that is given both hosts, and follows the one that takes writes (issue 5, point 3). */

let pair: Pair;
let troubled: Troubled;
let path: string;
/** Where the database is after the failover. */
const promoted = () => reachedBy(path, [pair.standbyPort]);

beforeAll(async () => {
  pair = await startPair();
  // The standby stands first: it is not the order that decides.
  const database = await databaseBy(pair.primary, [pair.standbyPort, pair.primary.port]);
  path = new URL(database.direct).pathname;
  troubled = await startTroubled(database);
}, 300_000);
afterAll(async () => {
  await troubled.stop();
  await pair.stop();
});

test('a standby is never asked, also where the primary is away', async () => {
  expect((await troubled.write()).status).toBe(201);
  await pair.primary.stop();
  await Bun.sleep(1_000);
  const away = await Promise.all([troubled.look(), troubled.write()]);
  expect(away.map(({ status }) => status)).toEqual([503, 503]);
  await pair.primary.start();
  await troubled.recovered();
}, 300_000);

test('the primary dies under load, the standby is promoted: nothing that was acknowledged is lost', async () => {
  const before = await troubled.users();
  const loading = troubled.load(3_500);
  await Bun.sleep(700);
  await pair.primary.kill();
  await Bun.sleep(300);
  await pair.promote();
  const heard = await loading;
  expect(new Set(heard.map(({ status }) => status))).toEqual(new Set([200, 201, 503]));
  const acknowledged = heard.flatMap(({ id }) => id ?? []);
  expect(acknowledged.length).toBeGreaterThan(20);
  expect(await troubled.users(promoted())).toEqual(new Set([...before, ...acknowledged]));
  await troubled.recovered();
}, 300_000);

test('the old primary comes back and takes writes as well: the one in force stays', async () => {
  await pair.primary.start();
  const before = await troubled.write();
  const sql = new SQL(promoted(), { max: 1 });
  await sql.unsafe(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  await sql.close();
  await troubled.recovered();
  await Bun.sleep(700);
  expect((await troubled.users(promoted())).has(before.id as string)).toBe(true);
  expect((await troubled.users()).has(before.id as string)).toBe(false);
  const made = userPath({ ...troubled.planted, user: before.id as string });
  const found = await troubled.service.get(made, await troubled.service.token('users:read'));
  expect(found.status).toBe(200);
}, 300_000);
