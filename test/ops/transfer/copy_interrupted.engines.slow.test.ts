import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  allRows,
  DIRECTIONS,
  type Engine,
  freshDatabaseOf,
  isEmptyTarget,
  newMasterKey,
  runCopy,
} from '../../support/copy_fixtures.ts';
import type { TestDatabase } from '../../support/database.ts';
import { populationLines } from '../../support/population.ts';
import { AUTHREALM, runClientCreate, runCommand, startCommand } from '../../support/processes.ts';
import { freshSeed, seededRandom } from '../../support/random.ts';
import { freshFolder } from '../../support/service.ts';

/** `authrealm copy` killed at every step, and a service that starts on its target: the target is empty or complete. */

setDefaultTimeout(300_000);

const USERS = 5_000;
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

function startCopy(from: TestDatabase, to: TestDatabase) {
  return startCommand([AUTHREALM, 'copy', '--from', from.url, '--to', to.url]);
}

/** Where a copy is killed: at once when it prints this step, or up to so many milliseconds later; how often. */
const STEPS: readonly (readonly [step: string, delayMsMax: number, kills: number])[] = [
  ['start', 500, 3],
  ['copying', 300, 3],
  ['comparing', 0, 2],
  ['committing', 0, 1],
];

describe.each(DIRECTIONS)('a killed copy from %s to %s', (from, to) => {
  test.each(STEPS)('a copy killed in the step %s begins from zero at the next run', async (...how) => {
    const [step, delayMsMax, kills] = how;
    const seed = freshSeed();
    console.log(`seed ${seed}`);
    const chance = seededRandom(seed);
    const [source, target] = [sourceOf(from), await freshDatabaseOf(to, key)];
    for (let kill = 1; kill <= kills && (await isEmptyTarget(target)); kill += 1) {
      // Rows of two runs would differ.
      expect((await runClientCreate(source, 'realms:read')).code).toBe(0);
      const copying = startCopy(source, target);
      if (step !== 'start') await copying.line(new RegExp(`^${step}$`));
      await Bun.sleep(chance() * delayMsMax);
      copying.process.kill('SIGKILL');
      await copying.process.exited;
    }
    const last = await runCopy(source, target);
    // The server may have received the commit.
    if (last.code !== 0)
      expect([step, last.stderr]).toEqual(['committing', expect.stringContaining('not empty')]);
    expect(await digests(target)).toEqual(await digests(source));
  });

  test('a service does not start on the target of a copy that has not ended', async () => {
    const [source, target] = [sourceOf(from), await freshDatabaseOf(to, key)];
    const copying = startCopy(source, target);
    await copying.line(/^comparing$/);
    copying.process.kill('SIGSTOP');
    const served = await runCommand([AUTHREALM, 'serve', '--port', '0', ...target.args]);
    expect([served.code, served.stdout]).toEqual([1, '']);
    copying.process.kill('SIGCONT');
    expect(await copying.process.exited).toBe(0);
    expect(await digests(target)).toEqual(await digests(source));
  });
});
