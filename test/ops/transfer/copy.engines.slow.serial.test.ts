import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { passwordProfileInfo, user } from '../../../src/model/resources.ts';
import type { CheckReport } from '../../../src/ops/doctor/inspection.ts';
import { COPIED_TABLES } from '../../../src/ops/store/copying/side.ts';
import {
  allRows,
  copiedRowCount,
  createCopyFixture,
  ENGINE_PAIRS,
  fillRemainingTables,
  freshDatabaseOf,
  isCopiedColumn,
  newMasterKey,
  responsesOf,
  runCopy,
  startCopyService,
} from '../../support/copy_fixtures.ts';
import type { TestDatabase } from '../../support/database.ts';
import { runDoctorOn } from '../../support/doctor_report.ts';

/** `authrealm copy` between both engines: the target equals the source. */

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
    expect(copiedRowCount(first.stdout)).toBe(countRows(content));
    expect(first.stdout).toContain('--master-key-file');

    const after = await startCopyService(target);
    expect(await responsesOf(after, fixture)).toEqual(answers);
    await after.stop();
    expect(await target.findInconsistencies()).toEqual([]);
    expect(await findingsIn(target)).toEqual(await findingsIn(source));
  });
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
      const known = new Map(COPIED_TABLES.map(({ name, copied }) => [name, [...copied.keys()]]));
      expect([...found.keys()].sort()).toEqual([...known.keys()].sort());
      for (const [name, rows] of found) {
        const ownColumns = rows.map(({ column }) => column).filter(isCopiedColumn);
        expect([name, ...(known.get(name) ?? [])].sort()).toEqual([name, ...ownColumns].sort());
      }
    },
  );
});
