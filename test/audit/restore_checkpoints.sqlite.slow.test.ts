import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointLine, readLine, restoreLine } from '../../src/audit/checkpoint.ts';
import type { LogHead } from '../../src/audit/port.ts';
import { headsOf } from '../../src/audit/verify.ts';
import { readSettings } from '../../src/config/parse.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EXIT } from '../../src/platform/exit.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import { copied, logKeysOf, rehearsed, runOn, storedDatabase } from '../support/archive.ts';
import { AUTHREALM } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** What checkpoints are worth once somebody says that a backup was put in the place of the database. */

setDefaultTimeout(300_000);

const HOUR_MS = 3_600_000;
const TAKEN_AT = Date.parse('2026-11-20T10:00:00Z');
const RESTORED_AT = TAKEN_AT + 10 * HOUR_MS;

let path: string;
let keys: OpenDatabase['logKeys'];
let heads: readonly LogHead[];

beforeAll(async () => {
  ({ path } = await storedDatabase(1));
  const { engine, logKeys } = await openDatabase(
    readSettings({ database: `sqlite:${path}` }, {}),
    systemClock,
  );
  keys = logKeys;
  heads = await Array.fromAsync(headsOf(engine.log));
  await engine.close();
});

/** As they are, or as they were before somebody wrote the logs anew. */
const said = (at: number, isTrue = true) =>
  checkpointLine(
    heads.map(({ chain, ...head }) => {
      if (!chain || isTrue) return { ...head, chain };
      return { ...head, chain: { ...chain, end: { ...chain.end, tag: Buffer.alloc(32) } } };
    }),
    { at, retentionDays: 90 },
    keys,
  );

async function verify(...lines: readonly string[]) {
  const file = join(freshFolder(), 'points');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  const { code, stdout } = await runOn(path, 'audit', 'verify', '--checkpoints', file, '--json');
  return { code, ...JSON.parse(stdout) };
}

describe('audit verify, after a restore was said', () => {
  const restored = (takenAt: number | undefined) => restoreLine({ at: RESTORED_AT, takenAt }, keys);

  test('compares what was told before the backup was taken', async () => {
    const before = TAKEN_AT - HOUR_MS;
    expect(await verify(said(before), restored(TAKEN_AT))).toMatchObject({
      ...{ code: EXIT.done, checkpoints: heads.length, not_seen: null },
      restored_at: new Date(RESTORED_AT).toISOString(),
      restored_taken_at: new Date(TAKEN_AT).toISOString(),
    });
    const anew = await verify(said(before, false), restored(TAKEN_AT));
    expect([anew.code, anew.findings.length]).toEqual([EXIT.failed, heads.length]);
    expect(anew.findings[0].says).toContain('this entry differs from a checkpoint');
  });

  test('does not compare what was told since of the database that was replaced, and compares what comes after', async () => {
    const between = said(TAKEN_AT + HOUR_MS, false);
    expect(await verify(between, restored(TAKEN_AT))).toMatchObject({ code: EXIT.done, checkpoints: 0 });
    const after = await verify(between, restored(TAKEN_AT), said(RESTORED_AT + HOUR_MS, false));
    expect([after.code, after.checkpoints]).toEqual([EXIT.failed, heads.length]);
  });

  test('compares nothing from before where nobody knows when the backup was taken, and says so', async () => {
    const untold = await verify(said(TAKEN_AT - HOUR_MS, false), restored(undefined));
    expect(untold).toMatchObject({ code: EXIT.done, checkpoints: 0, restored_taken_at: null });
    expect(untold.not_seen).not.toBeNull();
  });
});

test('restore says when its backup was taken', async () => {
  const { database, backup } = copied(await rehearsed(1));
  expect((await runOn(database, 'restore', backup, '--replace')).code).toBe(EXIT.done);
  const told = readFileSync(`${database}.checkpoints`, 'utf8').trim().split('\n').at(-1) ?? '';
  const { taken_at } = JSON.parse(readFileSync(`${backup}.json`, 'utf8'));
  const line = readLine(told, await logKeysOf(database));
  expect(line).toMatchObject({ kind: 'restore', isSigned: true, takenAt: Date.parse(taken_at) });
});

describe('a file of checkpoints', () => {
  test('that is not there, or is none, is refused by its name', async () => {
    for (const missing of [join(freshFolder(), 'missing'), freshFolder()]) {
      const { code, stdout, stderr } = await runOn(path, 'audit', 'verify', '--checkpoints', missing);
      expect([code, stdout, stderr]).toEqual([EXIT.failed, '', expect.stringMatching(/--checkpoints: \w+/)]);
    }
  });

  test('is read in pieces: one of any length is looked through in the same memory', async () => {
    const [small, large] = [join(freshFolder(), 'small'), join(freshFolder(), 'large')];
    const stranger = `${JSON.stringify({ kind: 'something to come', note: 'y'.repeat(60_000) })}\n`;
    writeFileSync(small, `\n${said(TAKEN_AT)}\n`);
    writeFileSync(large, '');
    for (let mega = 0; mega < 200; mega += 1) appendFileSync(large, stranger.repeat(17));
    appendFileSync(large, `${'x'.repeat(70_000)}\n${said(TAKEN_AT)}`);
    const [few, many] = [await measured(small), await measured(large)];
    expect(few.report).toMatchObject({ clean: true, checkpoints: heads.length });
    expect(many.report).toMatchObject({ clean: false, checkpoints: heads.length, findings: [] });
    expect(many.report.unsigned_lines).toHaveLength(200 * 17 + 1);
    expect(many.bytes - few.bytes).toBeLessThan(200_000_000);
  });
});

/** Verifies in a process of its own, and says how much memory that took at most. */
async function measured(file: string) {
  const words = ['audit', 'verify', '--checkpoints', file, '--json', '--database', `sqlite:${path}`];
  const child = Bun.spawn([AUTHREALM, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH ?? '' },
  });
  const report = JSON.parse(await new Response(child.stdout).text());
  await child.exited;
  return { report, bytes: child.resourceUsage()?.maxRSS ?? Number.NaN };
}
