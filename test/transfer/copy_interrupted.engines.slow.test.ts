import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user } from '../../src/domain/resources.ts';
import { serveFor } from '../support/client_service.ts';
import {
  copy,
  type Engine,
  everything,
  freshKey,
  freshOf,
  movedIn,
  prepare,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { lines } from '../support/population.ts';
import { AUTHREALM, clientCreate, runCommand, start } from '../support/processes.ts';
import { chanceOf, freshSeed } from '../support/random.ts';
import { type Body, FULL_SCOPE, kindOf, settle } from '../support/resource_cases.ts';
import { freshFolder } from '../support/service.ts';

/** `authrealm copy` killed, told to stop, and beside a service that goes on writing. */

setDefaultTimeout(300_000);

const USERS = 12_000;
const KILLS = 4;
const key = freshKey();
const sources = new Map<Engine, TestDatabase>();

beforeAll(async () => {
  const file = join(freshFolder(), 'lines.ndjson');
  writeFileSync(file, [...lines(USERS)].join('\n'));
  const [first, second] = [await freshOf('sqlite', key), await freshOf('postgres', key)];
  const brought = await runCommand([AUTHREALM, 'import', file, ...first.words]);
  expect([brought.code, brought.stderr]).toEqual([0, '']);
  expect((await copy(first, second)).code).toBe(0);
  sources.set('sqlite', first).set('postgres', second);
});

function sourceOf(engine: Engine): TestDatabase {
  const source = sources.get(engine);
  if (!source) throw new Error(`no source of ${engine}`);
  return source;
}

/** All that a database holds, as one text for each table. */
async function digests(database: TestDatabase): Promise<Readonly<Record<string, string>>> {
  const all = Object.entries(await everything(database));
  return Object.fromEntries(all.map(([table, rows]) => [table, String(Bun.hash(JSON.stringify(rows)))]));
}

async function isUnfinished(database: TestDatabase): Promise<boolean> {
  const [row] = await database.ask<{ store_id: string }>('select store_id from instance');
  return row?.store_id.startsWith('unfinished copy of ') ?? false;
}

const words = (from: TestDatabase, to: TestDatabase) => [
  AUTHREALM,
  'copy',
  '--prepare',
  '--from',
  from.url,
  '--to',
  to.url,
];

/** Both engines on both sides. */
const THERE_AND_BACK = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
] as const;

describe.each(THERE_AND_BACK)('from %s to %s', (from, to) => {
  test('killed again and again while the source goes on, it ends with what the source has', async () => {
    const seed = freshSeed();
    console.log(`seed ${seed}`);
    const chance = chanceOf(seed);
    const [source, target] = [sourceOf(from), await freshOf(to, key)];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      expect((await clientCreate(source, 'realms:read')).code).toBe(0);
      const copying = start(words(source, target));
      await copying.line(/^copying/);
      await Bun.sleep(chance() * 300);
      copying.process.kill('SIGKILL');
      await copying.process.exited;
      expect(await isUnfinished(target)).toBe(true);
      for (const command of ['serve', 'export']) {
        const refused = await runCommand([AUTHREALM, command, ...target.words]);
        expect([refused.code, refused.stdout]).toEqual([1, '']);
        expect(refused.stderr).toContain('has not ended');
      }
    }
    const last = await copy(source, target);
    expect([last.stderr, last.code]).toEqual(['', 0]);
    expect(await digests(target)).toEqual(await digests(source));
  });

  test('told to stop, it says how to go on, and goes on from there', async () => {
    const [source, target] = [sourceOf(from), await freshOf(to, key)];
    const stopped = start(words(source, target));
    await stopped.line(/^copying/);
    while ((await target.ask('select 1 from user_info limit 1')).length === 0) await Bun.sleep(5);
    stopped.process.kill('SIGINT');
    expect(await stopped.process.exited).toBe(1);
    expect(stopped.output()).toContain('run the same command again');
    expect(await isUnfinished(target)).toBe(true);
    const { stdout, code } = await copy(source, target);
    expect(code).toBe(0);
    const [added = 0, removed] = movedIn(stdout);
    const { instance: _, ...copied } = await everything(source);
    const rows = Object.values(copied).reduce((sum, table) => sum + table.length, 0);
    expect([added < rows, removed]).toEqual([true, 0]);
    expect(await digests(target)).toEqual(await digests(source));
  });
});

describe.each(THERE_AND_BACK)('a service that moves from %s to %s', (from, to) => {
  test('pauses writes for seconds, and loses none', async () => {
    const [old, next] = [await freshOf(from, key), await freshOf(to, key)];
    expect((await copy(sourceOf(from), old)).code).toBe(0);
    const made = JSON.parse((await clientCreate(old, FULL_SCOPE, '--json')).stdout);
    const before = await serveFor(old, made, ['--offline', '--base-url', 'https://idp.example']);
    const token = await before.token();
    const home = await settle(before, token);
    const users = kindOf(user);
    const acknowledged: string[] = [];
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) {
        const answer = await before.post(users.collection(home), token, { data: users.fresh(home) });
        if (answer.status === 201) acknowledged.push(((await answer.json()) as Body).data.id);
      }
    })();

    const whole = await prepare(old, next);
    expect([whole.stderr, whole.code]).toEqual(['', 0]);
    const since = performance.now();
    isWriting = false;
    await writing;
    expect(await before.running.stop()).toBe(0);
    const rest = await copy(old, next);
    expect([rest.stderr, rest.code]).toEqual(['', 0]);
    const after = await serveFor(next, made, ['--offline', '--base-url', 'https://idp.example']);
    expect((await after.post(users.collection(home), token, { data: users.fresh(home) })).status).toBe(201);
    const seconds = (performance.now() - since) / 1_000;
    console.log(`writes paused for ${seconds.toFixed(1)} s; ${movedIn(rest.stdout)[0]} rows moved in them`);
    expect(seconds).toBeLessThan(30);

    expect(acknowledged.length).toBeGreaterThan(0);
    expect(movedIn(rest.stdout)[0]).toBeLessThan(movedIn(whole.stdout)[0] ?? 0);
    for (const id of acknowledged) {
      expect((await after.get(`${users.collection(home)}/${id}`, token)).status).toBe(200);
    }
    expect(await after.running.stop()).toBe(0);
  });
});
