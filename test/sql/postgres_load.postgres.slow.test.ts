import { afterAll, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import type { Load } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import {
  anotherUser,
  createRealmFixture,
  type Insert,
  insert,
  mintId,
  oidcLink,
  usernameLink,
} from '../records/contract/store_fixtures.ts';
import { runOn, startServer } from '../support/postgres_server.ts';
import { STATEMENT_LOGGING } from '../support/statement_texts.ts';

/** What a bulk load sends to PostgreSQL, from the log of the server. */

const server = await startServer({ fsync: 'off', ...STATEMENT_LOGGING });
afterAll(() => server.stop());

async function openStore(parameters = '', database?: string) {
  const address = parseDatabase(`${database ?? (await server.freshDatabase())}${parameters}`);
  if (!address) throw new Error('the server has no URL');
  return openEngine(address, 'auto', { version: 'test', clock: systemClock });
}

/** Runs this code, in PL/pgSQL, in each statement that inserts into a table. */
async function addTrigger(database: string, table: string, code: string): Promise<void> {
  const body = `begin ${code}; return null; end`;
  await runOn(database, `create function triggered() returns trigger language plpgsql as $$${body}$$`);
  const when = `after insert on ${table} for each statement`;
  await runOn(database, `create trigger triggered ${when} execute function triggered()`);
}

const loadOf = (write: Insert): Load => ({
  write,
  compare: () => {
    throw new Error('no record is stored');
  },
});

/** Runs work. Returns the statements that the server ran meanwhile. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const mark = server.log().length;
  await work();
  const texts = server.log().slice(mark).split(/^@@/m);
  return texts.flatMap(
    (entry) => /^\S+ LOG: {2}(?:statement|execute [^:]*): (.*)\n$/s.exec(entry)?.[1] ?? [],
  );
}

/** The rows in statements that insert into a table of links. */
function insertedRows(statements: readonly string[]): number {
  const inserts = statements.filter((text) => text.startsWith('insert into oidc_profile_info'));
  return inserts.reduce((sum, text) => sum + text.split('), (').length, 0);
}

const roundTripsOf = (statements: readonly string[]): number =>
  statements.filter((text) => text === 'savepoint attempt').length;

test('a bulk load sends batches of insertsPerBatchMax records without waiting for their answers', async () => {
  const engine = await openStore();
  const here = await createRealmFixture(engine.records);
  const loads = Array.from({ length: 2 * LIMITS.insertsPerBatchMax }, () => loadOf(anotherUser(here)));
  const statements = await statementsOf(() => engine.records.load(loads, false));
  expect(roundTripsOf(statements)).toBe(0);
  const rows = statements
    .filter((text) => text.startsWith('insert into user_info'))
    .map((text) => text.split('), (').length);
  expect(rows).toEqual([
    256, 256, 256, 32, 32, 32, 32, 32, 32, 32, 8, 256, 256, 256, 32, 32, 32, 32, 32, 32, 32, 8,
  ]);
  await engine.close();
});

test.each(['user_info', 'log_entry'])(
  'a bulk load whose inserts into %s take longer than storeWaitMsMax is stored',
  async (table) => {
    const database = await server.freshDatabase();
    const engine = await openStore('', database);
    const here = await createRealmFixture(engine.records);
    const loads = Array.from({ length: 5 * LIMITS.insertsPerBatchMax }, () => loadOf(anotherUser(here)));
    await addTrigger(database, table, 'perform pg_sleep(0.1)');
    const startedAt = performance.now();
    const outcomes = await engine.records.load(loads, false);
    expect(outcomes.filter(({ kind }) => kind === 'written')).toHaveLength(loads.length);
    expect(performance.now() - startedAt).toBeGreaterThan(LIMITS.storeWaitMsMax);
    await engine.close();
  },
  60_000,
);

test('a bulk load that fails leaves the next one as it was: sent without waiting', async () => {
  const database = await server.freshDatabase();
  const engine = await openStore('', database);
  const here = await createRealmFixture(engine.records);
  await addTrigger(database, 'log_entry', `raise 'refused'`);
  const twice = [loadOf(oidcLink(here, 'subject')), loadOf(oidcLink(here, 'subject'))];
  await expect(engine.records.load(twice, false)).rejects.toBeInstanceOf(Error);
  await runOn(database, 'drop trigger triggered on log_entry');
  const loads = Array.from({ length: 10 }, () => loadOf(anotherUser(here)));
  expect(roundTripsOf(await statementsOf(() => engine.records.load(loads, false)))).toBe(0);
  await engine.close();
});

test('a bulk load with refused records runs again; each then costs few round trips and at most twice the rows of its batch', async () => {
  const engine = await openStore();
  const here = await createRealmFixture(engine.records);
  const batch = LIMITS.insertsPerBatchMax;
  const refused = [700, batch + 1_200, 2 * batch + 900];
  const loads = Array.from({ length: 3 * batch }, (_, at) =>
    loadOf(oidcLink(here, refused.includes(at) ? 'subject-0' : `subject-${at}`)),
  );
  const statements = await statementsOf(async () => {
    const outcomes = await engine.records.load(loads, false);
    expect(outcomes.flatMap(({ kind }, at) => (kind === 'written' ? [] : [at]))).toEqual(refused);
  });
  expect(roundTripsOf(statements)).toBeLessThan(3 + 3 * 2 * Math.log2(batch) + 3);
  expect(insertedRows(statements)).toBeLessThan(loads.length + refused.length * 2 * batch);
  await engine.close();
});

test.each([0, 1])(
  'a bulk load after one without a refusal reports a refused record, also with %i record behind its batch',
  async (more) => {
    const engine = await openStore();
    const here = await createRealmFixture(engine.records);
    expect(await engine.records.load([loadOf(oidcLink(here, 'stored'))], false)).toMatchObject([
      { kind: 'written' },
    ]);
    const loads = Array.from({ length: LIMITS.insertsPerBatchMax + more }, (_, at) =>
      loadOf(oidcLink(here, at === 10 ? 'stored' : `subject-${at}`)),
    );
    const outcomes = await engine.records.load(loads, false);
    const refused = outcomes.flatMap(({ kind }, at) => (kind === 'written' ? [] : [[kind, at]]));
    expect([outcomes.length, refused]).toEqual([loads.length, [['unique', 10]]]);
    const written = loads.map(({ write }) => write.record.id).filter((_, at) => at !== 10);
    const changes = await engine.records.changes(here.realm, 0, 10_000);
    expect(changes.slice(-written.length).map(({ id }) => id)).toEqual(written);
    await engine.close();
  },
);

test('a bulk load with a profile among users sends statements of many rows, also without prepared statements', async () => {
  const engine = await openStore('?prepare=off');
  const here = await createRealmFixture(engine.records);
  const profile = mintId();
  const people = Array.from({ length: 300 }, (_, at) => {
    const { id } = anotherUser(here).record;
    const parents = { ...here, user: id, ...(at < 150 ? {} : { oidc: profile }) };
    return [
      anotherUser(here, id),
      oidcLink(parents, `subject-${at}`),
      usernameLink(parents, `user-${at}@example.com`),
    ];
  });
  const members = { name: 'Later', discovery_url: 'https://later.example/', client_id: 'shop' };
  const later = insert(oidcProfile, [here.realm, profile], { ...members, issuer: 'https://later.example' });
  const writes = [...people.slice(0, 150).flat(), later, ...people.slice(150).flat()];
  const statements = await statementsOf(async () => {
    const outcomes = await engine.records.load(writes.map(loadOf), false);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['written']));
  });
  expect(statements.length).toBeLessThan(writes.length / 10);
  await engine.close();
});
