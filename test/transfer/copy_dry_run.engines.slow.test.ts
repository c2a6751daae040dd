import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import {
  allRows,
  changedRowCounts,
  createCopyFixture,
  ENGINE_PAIRS,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  runCopyPrepare,
  startCopyService,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** `authrealm copy --dry-run` between both engines: it counts what the copy then changes, and writes nothing. */

setDefaultTimeout(300_000);

const TABLES = `select schemaname, tablename from pg_tables
  where schemaname not in ('pg_catalog', 'information_schema') order by 1, 2`;

/** What a target that was never prepared contains. */
async function unpreparedContent({ address, query }: TestDatabase): Promise<unknown> {
  return address.engine === 'sqlite' ? existsSync(address.path) : query(TABLES);
}

function runDryCopy(from: TestDatabase, to: TestDatabase) {
  return runCommand([AUTHREALM, 'copy', '--dry-run', '--from', from.url, '--to', to.url]);
}

/** The numbers of rows that `--dry-run` prints. */
function previewedRowCounts(stdout: string): readonly number[] {
  const [, added, removed] = /^would add (\d+) rows and remove (\d+)$/m.exec(stdout) ?? [];
  return [Number(added), Number(removed)];
}

describe.each(ENGINE_PAIRS)('a dry run of a copy from %s to %s', (from, to) => {
  test('a dry run prints the numbers of the copy that follows, and writes neither side', async () => {
    const key = newMasterKey();
    const [source, target] = [await freshDatabaseOf(from, key), await freshDatabaseOf(to, key)];
    const service = await startCopyService(source);
    await createCopyFixture(service);
    const { clientId } = await service.client('realms:read');
    await service.stop();
    const preview = async () => {
      const { code, stderr, stdout } = await runDryCopy(source, target);
      expect([stderr, code]).toEqual(['', 0]);
      return previewedRowCounts(stdout);
    };

    const [empty, stored] = [await unpreparedContent(target), await allRows(source)];
    const first = await preview();
    expect([await unpreparedContent(target), await allRows(source)]).toEqual([empty, stored]);
    expect(changedRowCounts((await runCopyPrepare(source, target)).stdout)).toEqual(first);

    const removed = await runCommand([AUTHREALM, 'client', 'delete', clientId, '--yes', ...source.args]);
    expect([removed.stderr, removed.code]).toEqual(['', 0]);
    const [prepared, changed] = [await allRows(target), await allRows(source)];
    const second = await preview();
    expect(second[1]).toBeGreaterThan(0);
    expect([await allRows(target), await allRows(source)]).toEqual([prepared, changed]);
    expect(changedRowCounts((await runCopy(source, target)).stdout)).toEqual(second);

    const refused = await runDryCopy(source, target);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the target is not empty')]);
  });
});
