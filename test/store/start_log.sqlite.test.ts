import { expect, test } from 'bun:test';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import type { LogRecord } from '../../src/platform/log.ts';
import { createNextProgram } from '../support/next_program.ts';
import { AUTHREALM, runCommand, startCommand, urlOf } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** What a start logs before it serves. */

/** The records that a start logs before `started`. */
async function startRecords(database: string, program = AUTHREALM): Promise<readonly LogRecord[]> {
  const service = startCommand([program, 'serve', '--port', '0', '--database', `sqlite:${database}`]);
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
