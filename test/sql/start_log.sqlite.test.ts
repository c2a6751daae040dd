import { describe, expect, test } from 'bun:test';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LogRecord } from '../../src/ops/process/log.ts';
import { createNextProgram } from '../support/next_program.ts';
import { AUTHREALM, runCommand, startCommand, urlOf } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** What a start logs before it serves. */

/** The records that a start logs before `started`. */
async function startRecords(
  database: string,
  program = AUTHREALM,
  flags: readonly string[] = [],
): Promise<readonly LogRecord[]> {
  const words = ['serve', '--port', '0', '--database', `sqlite:${database}`, ...flags];
  const service = startCommand([program, ...words]);
  await urlOf(service);
  expect(await service.stop()).toBe(0);
  const lines = service
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'));
  const records = lines.map((line) => JSON.parse(line) as LogRecord);
  return records.slice(
    0,
    records.findIndex(({ event }) => event === 'started'),
  );
}

test('a start logs that it migrated the schema, with both versions and the name of the copy', async () => {
  const path = join(freshFolder(), 'authrealm.db');
  expect((await runCommand([AUTHREALM, 'init', '--database', path])).code).toBe(0);
  const next = createNextProgram('create table of_next (id text) strict;');
  expect(await startRecords(path, next)).toMatchObject([
    { level: 30, event: 'migrated', from: 1, to: 2, copy: `${path}.schema-1` },
  ]);
  expect(await startRecords(path, next)).toEqual([]);
});

test('a start warns of a database and a key that other users may read', async () => {
  const path = `${freshFolder()}/authrealm.db`;
  expect((await runCommand([AUTHREALM, 'init', '--database', path])).code).toBe(0);
  chmodSync(path, 0o644);
  chmodSync(`${path}.key`, 0o640);
  expect(await startRecords(path)).toMatchObject([
    { level: 40, event: 'file_mode', path, mode: '0644' },
    { level: 40, event: 'file_mode', path: `${path}.key`, mode: '0640' },
  ]);
});

describe('a settings file', () => {
  const folder = freshFolder();
  const config = join(folder, 'authrealm.conf');
  const SECRET = `AUTHREALM_MASTER_KEY=${Buffer.alloc(32, 7).toString('hex')}\n`;

  /** The modes that a start warns of. */
  async function warnedOf(database: string, text: string, mode: number, owner = process.getuid?.() ?? 0) {
    writeFileSync(config, text);
    chmodSync(config, mode);
    chownSync(config, owner, process.getgid?.() ?? 0);
    const records = await startRecords(join(folder, database), AUTHREALM, ['--config', config]);
    return records.flatMap((record) => (record.event === 'file_mode' ? [record.path, record.mode] : []));
  }

  test('a start warns of a settings file with a secret that other users may read, and of none without one', async () => {
    expect(await warnedOf('one.db', SECRET, 0o600)).toEqual([]);
    expect(await warnedOf('one.db', SECRET, 0o640)).toEqual([config, '0640']);
    expect(await warnedOf('another.db', 'AUTHREALM_HOST=127.0.0.1\n', 0o644)).toEqual([]);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'a start does not warn of a settings file of another user that it reads through its group',
    async () => {
      const nobody = 65_534;
      expect(await warnedOf('one.db', SECRET, 0o640, nobody)).toEqual([]);
      expect(await warnedOf('one.db', SECRET, 0o644, nobody)).toEqual([config, '0644']);
    },
  );
});
