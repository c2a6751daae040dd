import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { checkpointLine, readLine, restoreLine } from '../../src/log/checkpoint.ts';
import { headsOf } from '../../src/log/verify.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { EXIT } from '../../src/ops/process/exit.ts';
import {
  copyBackupFixture,
  createBackupFixture,
  createStoredDatabase,
  logKeysOf,
  queryRows,
  runOnFile,
} from '../support/backup_fixtures.ts';
import { runMeasured } from '../support/peak_memory.ts';
import { AUTHREALM } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** How verify compares checkpoints after a restore was recorded. */

setDefaultTimeout(300_000);

const HOUR_MS = 3_600_000;
const TAKEN_AT = Date.parse('2026-11-20T10:00:00Z');
const RESTORED_AT = TAKEN_AT + 10 * HOUR_MS;

const { path } = await createStoredDatabase(1);
const { engine, logKeys } = await openDatabase(readSettings({ database: `sqlite:${path}` }, {}), systemClock);
const keys = logKeys;
const heads = await Array.fromAsync(headsOf(engine.log));
await engine.close();

/** A checkpoint line of the logs as they are, or of other entries at the same positions. */
const checkpointAt = (at: number, isGenuine = true) =>
  checkpointLine(
    heads.map(({ chain, ...head }) => {
      if (!chain || isGenuine) return { ...head, chain };
      return { ...head, chain: { ...chain, end: { ...chain.end, tag: Buffer.alloc(32) } } };
    }),
    { at, retentionDays: 90 },
    keys,
  );

async function verify(...lines: readonly string[]) {
  const file = join(freshFolder(), 'points');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  const { code, stdout } = await runOnFile(path, 'audit', 'verify', '--checkpoints', file, '--json');
  return { code, ...JSON.parse(stdout) };
}

describe('audit verify after a recorded restore', () => {
  const restored = (takenAt: number | undefined) => restoreLine({ at: RESTORED_AT, takenAt }, keys);

  test('audit verify compares checkpoints written before the backup was taken', async () => {
    const before = TAKEN_AT - HOUR_MS;
    expect(await verify(checkpointAt(before), restored(TAKEN_AT))).toMatchObject({
      ...{ code: EXIT.done, checkpoints: heads.length, not_seen: null },
      restored_at: new Date(RESTORED_AT).toISOString(),
      restored_taken_at: new Date(TAKEN_AT).toISOString(),
    });
    const rewritten = await verify(checkpointAt(before, false), restored(TAKEN_AT));
    expect([rewritten.code, rewritten.findings.length]).toEqual([EXIT.failed, heads.length]);
    expect(rewritten.findings[0].says).toContain('this entry differs from a checkpoint');
  });

  test('audit verify skips checkpoints between backup and restore, and compares those after the restore', async () => {
    const between = checkpointAt(TAKEN_AT + HOUR_MS, false);
    expect(await verify(between, restored(TAKEN_AT))).toMatchObject({ code: EXIT.done, checkpoints: 0 });
    const after = await verify(between, restored(TAKEN_AT), checkpointAt(RESTORED_AT + HOUR_MS, false));
    expect([after.code, after.checkpoints]).toEqual([EXIT.failed, heads.length]);
  });

  test('audit verify skips all earlier checkpoints if the time of the backup is unknown, and reports that', async () => {
    const result = await verify(checkpointAt(TAKEN_AT - HOUR_MS, false), restored(undefined));
    expect(result).toMatchObject({ code: EXIT.done, checkpoints: 0, restored_taken_at: null });
    expect(result.not_seen).not.toBeNull();
  });
});

test('restore records when its backup was taken', async () => {
  const { database, backup } = copyBackupFixture(await createBackupFixture(1));
  expect((await runOnFile(database, 'restore', backup, '--replace', '--yes')).code).toBe(EXIT.done);
  const lastLine = readFileSync(`${database}.checkpoints`, 'utf8').trim().split('\n').at(-1) ?? '';
  const { taken_at } = JSON.parse(readFileSync(`${backup}.json`, 'utf8'));
  const line = readLine(lastLine, await logKeysOf(database));
  expect(line).toMatchObject({ kind: 'restore', isSigned: true, takenAt: Date.parse(taken_at) });
});

test('restore deletes console links and sessions, which may have been used or ended since the backup', async () => {
  const { path: database } = await createStoredDatabase(1);
  const link = await runOnFile(database, 'console', 'link', '--scope', 'users:read');
  expect(link.code).toBe(EXIT.done);
  const begun = `insert into console_session (session_id, actor, scopes, realms, rules, begun_at, renewed_at, ends_at)
    values ('s', 'console:a', 'users:read', '*', '', 1, ${Date.now()}, ${Date.now() + HOUR_MS})`;
  const rows = ['select 1 from console_link', 'select 1 from console_session'];
  const countsAfter = (...sql: string[]) => queryRows(database, [...sql, ...rows]).slice(sql.length);
  expect(countsAfter(begun).map(({ length }) => length)).toEqual([1, 1]);
  const backup = join(freshFolder(), 'backup.db');
  expect((await runOnFile(database, 'backup', '--to', backup)).code).toBe(EXIT.done);
  expect((await runOnFile(database, 'restore', backup, '--replace', '--yes')).code).toBe(EXIT.done);
  expect(countsAfter()).toEqual([[], []]);
});

describe('a checkpoint file', () => {
  test('a checkpoint file that is missing or a folder is rejected by the name of the option', async () => {
    for (const missing of [join(freshFolder(), 'missing'), freshFolder()]) {
      const { code, stdout, stderr } = await runOnFile(path, 'audit', 'verify', '--checkpoints', missing);
      expect([code, stdout, stderr]).toEqual([
        EXIT.failed,
        '',
        expect.stringMatching(/--checkpoints: \S+ cannot be read/),
      ]);
    }
  });

  test('a checkpoint file of any length is read in bounded memory', async () => {
    const [small, large] = [join(freshFolder(), 'small'), join(freshFolder(), 'large')];
    const unsignedLine = `${JSON.stringify({ kind: 'something to come', note: 'y'.repeat(60_000) })}\n`;
    writeFileSync(small, `\n${checkpointAt(TAKEN_AT)}\n`);
    writeFileSync(large, '');
    for (let block = 0; block < 200; block += 1) appendFileSync(large, unsignedLine.repeat(17));
    appendFileSync(large, `${'x'.repeat(70_000)}\n${checkpointAt(TAKEN_AT)}`);
    const [few, many] = [await measured(small), await measured(large)];
    expect(few.report).toMatchObject({ clean: true, checkpoints: heads.length });
    expect(many.report).toMatchObject({ clean: false, checkpoints: heads.length, findings: [] });
    expect(many.report.unsigned_lines).toHaveLength(200 * 17 + 1);
    expect(many.peakMb - few.peakMb).toBeLessThan(190);
  });
});

/** Verifies in a separate process, and returns its report and peak memory. */
async function measured(file: string) {
  const words = ['audit', 'verify', '--checkpoints', file, '--json', '--database', `sqlite:${path}`];
  const { stdout, peakMb } = await runMeasured([AUTHREALM, ...words]);
  return { report: JSON.parse(stdout), peakMb };
}
