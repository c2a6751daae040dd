import { afterAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { databaseThrough, startFaultyService, urlThrough } from '../support/fault_injection.ts';
import { userPath } from '../support/resource_cases.ts';
import { startStandbyPair } from '../support/standby.ts';

/** A service with both hosts in its URL, which uses the one that takes writes. */

/** The URL of the database after the failover. */
const promotedUrl = () => urlThrough(path, [pair.standbyPort]);

const pair = await startStandbyPair();
// The standby is named first: the order does not decide.
const database = await databaseThrough(pair.primary, [pair.standbyPort, pair.primary.port]);
const path = new URL(database.direct).pathname;
const faulty = await startFaultyService(database);
afterAll(() => pair.stop());

test('requests never go to a standby, also when the primary is down', async () => {
  expect((await faulty.write()).status).toBe(201);
  await pair.primary.stop();
  await Bun.sleep(1_000);
  const answers = await Promise.all([faulty.lookUp(), faulty.write()]);
  expect(answers.map(({ status }) => status)).toEqual([503, 503]);
  await pair.primary.start();
  await faulty.measureRecovery();
}, 300_000);

test('no acknowledged write is lost when the primary dies under load and the standby is promoted', async () => {
  const before = await faulty.users();
  const loading = faulty.runLoad(3_500);
  await Bun.sleep(700);
  await pair.primary.kill();
  await Bun.sleep(300);
  await pair.promote();
  const answers = await loading;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 201, 503]));
  const acknowledged = answers.flatMap(({ id }) => id ?? []);
  expect(acknowledged.length).toBeGreaterThan(20);
  expect(await faulty.users(promotedUrl())).toEqual(new Set([...before, ...acknowledged]));
  await faulty.measureRecovery();
}, 300_000);

test('the service stays with the promoted primary when the old primary comes back', async () => {
  await pair.primary.start();
  const before = await faulty.write();
  const sql = new SQL(promotedUrl(), { max: 1 });
  await sql.unsafe(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  await sql.close();
  await faulty.measureRecovery();
  await Bun.sleep(700);
  expect((await faulty.users(promotedUrl())).has(before.id as string)).toBe(true);
  expect((await faulty.users()).has(before.id as string)).toBe(false);
  const made = userPath({ ...faulty.fixture, user: before.id as string });
  const found = await faulty.service.get(made, await faulty.service.token('users:read'));
  expect(found.status).toBe(200);
}, 300_000);
