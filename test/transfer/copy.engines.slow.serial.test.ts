import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { CheckReport } from '../../src/doctor/inspection.ts';
import { passwordProfileInfo, RESOURCES, user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { COPIED_TABLES, INSTANCE } from '../../src/store/copying/tables.ts';
import {
  allRows,
  changedRowCounts,
  createCopyFixture,
  ENGINE_PAIRS,
  fillRemainingTables,
  freshDatabaseOf,
  isCopiedColumn,
  newMasterKey,
  responsesOf,
  runCopy,
  runCopyPrepare,
  startCopyService,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createRecord, KINDS, kindOf, type RecordBody } from '../support/resource_cases.ts';
import { createFixture } from '../support/service.ts';

/** `authrealm copy` between both engines, in one pass or after `--prepare`: the target equals the source. */

setDefaultTimeout(300_000);

const countRows = (all: Awaited<ReturnType<typeof allRows>>): number =>
  Object.values(all).reduce((sum, rows) => sum + rows.length, 0);

describe.each(ENGINE_PAIRS)('a copy from %s to %s', (from, to) => {
  test('a copy contains every row of the source and is served with the same bytes', async () => {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const before = await startCopyService(source);
    const fixture = await createCopyFixture(before);
    await fillRemainingTables(source);
    const answers = await responsesOf(before, fixture);
    await before.stop();

    const first = await runCopy(source, target);
    expect([first.stderr, first.code]).toEqual(['', 0]);
    const content = await allRows(source);
    for (const [table, rows] of Object.entries(content))
      expect([table, rows.length > 0]).toEqual([table, true]);
    expect(await allRows(target)).toEqual(content);
    expect(changedRowCounts(first.stdout)).toEqual([countRows(content) - 1, 0]);
    expect(first.stdout).toContain('--master-key-file');

    const after = await startCopyService(target);
    expect(await responsesOf(after, fixture)).toEqual(answers);
    await after.stop();
    for (const { args } of [source, target]) {
      const purge = await runCommand([AUTHREALM, 'purge', '--yes', 'realm', fixture.purged, ...args]);
      expect([purge.stderr, purge.code]).toEqual(['', 0]);
    }
    expect(await target.findInconsistencies()).toEqual([]);
    expect(await findingsIn(target)).toEqual(await findingsIn(source));
  });

  test('a copy into a prepared target moves only the changed rows', async () => {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const service = await startCopyService(source);
    const fixture = await createCopyFixture(service);
    const first = await runCopyPrepare(source, target);
    expect([first.stderr, first.code]).toEqual(['', 0]);
    const again = await runCopyPrepare(source, target);
    expect([again.stderr, changedRowCounts(again.stdout)]).toEqual(['', [0, 0]]);

    const { token, home } = fixture;
    for (const kind of KINDS) {
      const { path, etag } = await createRecord(service, token, { kind, home });
      const { status } = await service.put(path, token, { data: { ...kind.fresh(home), ...kind.changes() } });
      expect([kind.name, status, etag !== '']).toEqual([kind.name, 200, true]);
    }
    const [link, other] = [await linkOf('one'), await linkOf('two')];
    await runCopyPrepare(source, target);

    // Two records swap a unique value, and users and profiles are removed with their dependents.
    await rename(link, 'three');
    await rename(other, 'one');
    await rename(link, 'two');
    for (const path of fixture.paths.filter((_, at) => at % 2 === 1)) {
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

describe.each(ENGINE_PAIRS)('the log of a copy from %s to %s', (from, to) => {
  test('audit entries trimmed after the preparation are removed from the target', async () => {
    const { source, target, service, realm } = await prepareCopy();
    const { log } = service.db.engine;
    const cutoff = systemClock.now() + 60_000;
    const trimmed = await log.trim(realm, cutoff);
    expect(trimmed).toBeGreaterThan(0);
    const { stderr, code } = await runCopy(source, target);
    expect([stderr, code]).toEqual(['', 0]);
    expect(await allRows(target)).toEqual(await allRows(source));
    await service.stop();
  });

  /** A service with a realm in its database, and a prepared target. */
  async function prepareCopy() {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const service = await startCopyService(source);
    const { realm } = await createFixture(service.db);
    expect((await runCopyPrepare(source, target)).code).toBe(0);
    return { source, target, service, realm };
  }
});

/** The findings of doctor in tables. */
async function findingsIn(database: TestDatabase) {
  const { checks } = JSON.parse((await runDoctorOn(database)).text) as { checks: CheckReport[] };
  return checks.flatMap(({ findings }) => findings).filter(({ table }) => table !== undefined);
}

describe('the tables of a copy', () => {
  test.each(['sqlite', 'postgres'] as const)(
    'a copy covers every table and column of the schema: %s',
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
      // These tables describe a database's own schema and processes and are not copied.
      for (const name of ['migration', 'lease']) expect(found.delete(name)).toBe(true);
      // The triggers of the target write its words.
      for (const { table } of [user, passwordProfileInfo])
        expect(found.delete(`${table}_word`)).toBe(engine === 'sqlite');
      const known = new Map([INSTANCE, ...COPIED_TABLES].map((table) => [table.name, table]));
      expect([...found.keys()].sort()).toEqual([...known.keys()].sort());
      for (const [name, rows] of found) {
        const ownColumns = rows.map(({ column }) => column).filter(isCopiedColumn);
        const table = known.get(name);
        expect([name, ...(table?.columns ?? [])].sort()).toEqual([name, ...ownColumns].sort());
      }
    },
  );
});
