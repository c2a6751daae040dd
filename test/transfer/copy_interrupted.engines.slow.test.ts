import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  allRows,
  changedRowCounts,
  DIRECTIONS,
  type Engine,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { populationLines } from '../support/population.ts';
import { AUTHREALM, runClientCreate, runCommand, startCommand } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';

/** `authrealm copy` killed and interrupted. */

setDefaultTimeout(300_000);

const USERS = 5_000;
const KILLS = 4;
const key = newMasterKey();
const sources = new Map<Engine, TestDatabase>();

const file = join(freshFolder(), 'lines.ndjson');
writeFileSync(file, [...populationLines(USERS)].join('\n'));
const [[firstEngine, secondEngine]] = DIRECTIONS;
const [first, second] = [await freshDatabaseOf(firstEngine, key), await freshDatabaseOf(secondEngine, key)];
await (await first.open()).close();
const imported = await runCommand([AUTHREALM, 'import', file, ...first.args]);
expect([imported.code, imported.stderr]).toEqual([0, '']);
const copied = await runCopy(first, second);
expect([copied.code, copied.stderr]).toEqual([0, '']);
sources.set(firstEngine, first).set(secondEngine, second);

function sourceOf(engine: Engine): TestDatabase {
  const source = sources.get(engine);
  if (!source) throw new Error(`no source on ${engine}`);
  return source;
}

/** A hash of each table. */
async function digests(database: TestDatabase): Promise<Readonly<Record<string, string>>> {
  const all = Object.entries(await allRows(database));
  return Object.fromEntries(all.map(([table, rows]) => [table, String(Bun.hash(JSON.stringify(rows)))]));
}

async function isUnfinished(database: TestDatabase): Promise<boolean> {
  const [row] = await database.query<{ store_id: string }>('select store_id from instance');
  return row?.store_id.startsWith('unfinished copy of ') ?? false;
}

const copyCommand = (from: TestDatabase, to: TestDatabase) => [
  AUTHREALM,
  'copy',
  '--yes',
  '--from',
  from.url,
  '--to',
  to.url,
];

describe.each(DIRECTIONS)('an interrupted copy from %s to %s', (from, to) => {
  test('a copy killed several times while the source changes ends equal to the source', async () => {
    const seed = freshSeed();
    console.log(`seed ${seed}`);
    const chance = seededRandom(seed);
    const [source, target] = [sourceOf(from), await freshDatabaseOf(to, key)];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      expect((await runClientCreate(source, 'realms:read')).code).toBe(0);
      const copying = startCommand(copyCommand(source, target));
      await copying.line(/^copying/);
      await Bun.sleep(chance() * 300);
      copying.process.kill('SIGKILL');
      await copying.process.exited;
      expect(await isUnfinished(target)).toBe(true);
    }
    for (const command of ['serve', 'export']) {
      const refused = await runCommand([AUTHREALM, command, ...target.args]);
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toContain('is not complete');
    }
    const last = await runCopy(source, target);
    expect([last.stderr, last.code]).toEqual(['', 0]);
    expect(await digests(target)).toEqual(await digests(source));
  });

  test('a copy stopped by SIGINT prints how to resume, and resumes where it stopped', async () => {
    const [source, target] = [sourceOf(from), await freshDatabaseOf(to, key)];
    const stopped = startCommand(copyCommand(source, target));
    await stopped.line(/^copying/);
    while ((await target.query('select 1 from user_info limit 1')).length === 0) await Bun.sleep(5);
    stopped.process.kill('SIGINT');
    expect(await stopped.process.exited).toBe(1);
    expect(stopped.output()).toContain('run the same command again');
    expect(await isUnfinished(target)).toBe(true);
    const { stdout, code } = await runCopy(source, target);
    expect(code).toBe(0);
    const [added = 0, removed] = changedRowCounts(stdout);
    const { instance: _, ...copied } = await allRows(source);
    const rows = Object.values(copied).reduce((sum, table) => sum + table.length, 0);
    expect([added < rows, removed]).toEqual([true, 0]);
    expect(await digests(target)).toEqual(await digests(source));
  });
});
