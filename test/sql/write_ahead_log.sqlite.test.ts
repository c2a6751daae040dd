import { expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../src/model/limits.ts';
import { enableWal } from '../../src/ops/store/sqlite/open.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { atEnd } from '../support/ending.ts';
import { databaseFile, freshFolder, startService } from '../support/service.ts';

const MEBIBYTE = 1_048_576;

test('the write-ahead log returns to its bound after a reader that stalled', () => {
  const path = join(freshFolder(), 'a.db');
  const [writer, reader] = [connectSqlite(path), connectSqlite(path)];
  atEnd(() => {
    reader.close();
    writer.close();
  });
  const logBytes = () => statSync(`${path}-wal`).size;
  enableWal(writer);
  writer.run('create table large (content blob)');
  const insert = (bytes: number) => writer.run('insert into large values (zeroblob(?))', [bytes]);
  insert(1);
  reader.run('begin');
  reader.query('select count(*) from large').get();
  while (logBytes() <= LIMITS.writeAheadLogBytesMax) insert(MEBIBYTE);
  reader.run('commit');
  // The first commit copies the log into the database, the second one begins the log again.
  for (let commit = 0; commit < 2; commit += 1) insert(1);
  expect(logBytes()).toBeLessThanOrEqual(LIMITS.writeAheadLogBytesMax);
});

test('a metric has the size of the write-ahead log', async () => {
  const service = await startService();
  const token = await service.token('admin');
  const answer = await service.get('/admin/v1/metrics', token);
  const { data } = (await answer.json()) as {
    data: { families: { name: string; samples: { value: number }[] }[] };
  };
  const family = data.families.find(({ name }) => name === 'authrealm_write_ahead_log_bytes');
  expect(family?.samples[0]?.value).toBe(statSync(`${databaseFile(service)}-wal`).size);
});
