import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { CheckReport } from '../../src/doctor/inspection.ts';
import { RESOURCES } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { INSTANCE, TABLES, transferredColumns } from '../../src/store/copying/tables.ts';
import {
  allRows,
  changedRowCounts,
  createCopyFixture,
  ENGINE_PAIRS,
  fillRemainingTables,
  freshDatabaseOf,
  newMasterKey,
  responsesOf,
  runCopy,
  runCopyPrepare,
  startCopyService,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import type { Json } from '../support/import_fixtures.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createRecord, KINDS, kindOf, type RecordBody } from '../support/resource_cases.ts';
import { createFixture } from '../support/service.ts';

/** `authrealm copy`: the target holds what the source does, in both directions, in one pass or prepared. */

setDefaultTimeout(300_000);

const rowsIn = (all: Awaited<ReturnType<typeof allRows>>): number =>
  Object.values(all).reduce((sum, rows) => sum + rows.length, 0);

describe.each(ENGINE_PAIRS)('from %s to %s', (from, to) => {
  test('everything arrives, and is answered with the same bytes', async () => {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const before = await startCopyService(source);
    const world = await createCopyFixture(before);
    await fillRemainingTables(source);
    const answered = await responsesOf(before, world);
    await before.stop();

    const first = await runCopy(source, target);
    expect([first.stderr, first.code]).toEqual(['', 0]);
    const there = await allRows(source);
    for (const [table, rows] of Object.entries(there))
      expect([table, rows.length > 0]).toEqual([table, true]);
    expect(await allRows(target)).toEqual(there);
    expect(changedRowCounts(first.stdout)).toEqual([rowsIn(there) - 1, 0]);
    expect(first.stdout).toContain('--master-key-file');

    const after = await startCopyService(target);
    expect(await responsesOf(after, world)).toEqual(answered);
    await after.stop();
    for (const { args } of [source, target]) {
      const purge = await runCommand([AUTHREALM, 'purge', 'realm', world.purged, ...args]);
      expect([purge.stderr, purge.code]).toEqual(['', 0]);
    }
    expect(await target.findInconsistencies()).toEqual([]);
    expect(await findingsIn(target)).toEqual(await findingsIn(source));
  });

  test('a copy into a prepared target brings over what has changed, and nothing else', async () => {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const service = await startCopyService(source);
    const world = await createCopyFixture(service);
    await runCopyPrepare(source, target);
    const again = await runCopyPrepare(source, target);
    expect([again.stderr, changedRowCounts(again.stdout)]).toEqual(['', [0, 0]]);

    const { token, home } = world;
    for (const kind of KINDS) {
      const { path, etag } = await createRecord(service, token, { kind, home });
      const { status } = await service.put(path, token, { data: { ...kind.fresh(home), ...kind.changes() } });
      expect([kind.name, status, etag !== '']).toEqual([kind.name, 200, true]);
    }
    const [link, other] = [await linkOf('one'), await linkOf('two')];
    await runCopyPrepare(source, target);

    // Two records change what only one may have, and users and profiles go with what hangs on them.
    await rename(link, 'three');
    await rename(other, 'one');
    await rename(link, 'two');
    for (const path of world.paths.filter((_, at) => at % 2 === 1)) {
      expect((await service.del(path, token)).status).toBeLessThan(500);
    }
    await service.client('realms:read');
    const last = await runCopy(source, target);
    expect([last.stderr, last.code]).toEqual(['', 0]);
    expect(await allRows(target)).toEqual(await allRows(source));
    await service.stop();

    async function linkOf(subject: string): Promise<string> {
      const kind = kindOf(RESOURCES.find(({ name }) => name.includes('oidc-profile-info')) as never);
      return (await createRecord(service, token, { kind, home, data: { subject } })).path;
    }
    async function rename(path: string, subject: string): Promise<void> {
      const { data } = (await (await service.get(path, token)).json()) as RecordBody;
      const { type, issuer } = data;
      const answer = await service.put(path, token, { data: { type, id: data.id, subject, issuer } });
      expect(answer.status).toBe(200);
    }
  });
});

describe.each(ENGINE_PAIRS)('the log, from %s to %s', (from, to) => {
  test('an entry that got its tag after the preparation gets it in the target', async () => {
    const { source, target, service, realm } = await prepared();
    // As release 0.1.0 writes a change.
    await source.tamper(
      `insert into change (realm_id, seq, event, record_id, revision, members, actor, at)
       select realm_id, k.seq + 1, 'noted', record_id, revision, '', actor, at
       from change c join realm_clock k using (realm_id) where realm_id = ? and c.seq = 1`,
      realm,
    );
    await source.tamper('update realm_clock set seq = seq + 1 where realm_id = ?', realm);
    await runCopyPrepare(source, target);
    const untagged = 'select event from change where tag is null';
    expect(await target.query<Json>(untagged)).toEqual([{ event: 'noted' }]);
    await createFixture(service.db, { realm });
    const { stderr, code } = await runCopy(source, target);
    expect([stderr, code]).toEqual(['', 0]);
    expect(await target.query<Json>(untagged)).toEqual([]);
    expect(await allRows(target)).toEqual(await allRows(source));
    await service.stop();
  });

  test('entries that were removed by age after the preparation are removed from the target', async () => {
    const { source, target, service, realm } = await prepared();
    const { log } = service.db.engine;
    const lots = systemClock.now() + 60_000;
    const gone = await log.trim(realm, lots);
    expect(gone).toBeGreaterThan(0);
    const { stderr, code } = await runCopy(source, target);
    expect([stderr, code]).toEqual(['', 0]);
    expect(await allRows(target)).toEqual(await allRows(source));
    await service.stop();
  });

  /** A service and what it has written in a realm, and a target prepared from that. */
  async function prepared() {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const service = await startCopyService(source);
    const { realm } = await createFixture(service.db);
    expect((await runCopyPrepare(source, target)).code).toBe(0);
    return { source, target, service, realm };
  }
});

/** What doctor has found in the tables. */
async function findingsIn(database: TestDatabase) {
  const { checks } = JSON.parse((await runDoctorOn(database)).text) as { checks: CheckReport[] };
  return checks.flatMap(({ findings }) => findings).filter(({ table }) => table !== undefined);
}

describe('the tables of a copy', () => {
  test.each(['sqlite', 'postgres'] as const)(
    'are those of the schema, with all of its columns: %s',
    async (engine) => {
      const database = await freshDatabaseOf(engine, newMasterKey());
      await (await startCopyService(database)).stop();
      const columns =
        engine === 'sqlite'
          ? `select m.name as "table", c.name as "column" from sqlite_schema m, pragma_table_info(m.name) c
           where m.type = 'table' and m.name not like 'sqlite_%'`
          : `select table_name::text as "table", column_name::text as "column" from information_schema.columns
           where table_schema = current_schema()`;
      const found = Map.groupBy(
        await database.query<{ table: string; column: string }>(columns),
        ({ table }) => table,
      );
      // What a database says of its own schema, and of its own processes.
      for (const own of ['migration', 'lease']) expect(found.delete(own)).toBe(true);
      const known = new Map([INSTANCE, ...TABLES].map((table) => [table.name, table]));
      expect([...found.keys()].sort()).toEqual([...known.keys()].sort());
      for (const [name, rows] of found) {
        const own = rows
          .map(({ column }) => column)
          .filter((column) => column !== 'slot' && column !== 'moved' && !column.endsWith('_crc'));
        const table = known.get(name);
        expect([name, ...(table ? transferredColumns(table) : [])].sort()).toEqual([name, ...own].sort());
      }
    },
  );
});
