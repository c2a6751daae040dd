import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mappedBytes, usageOf } from '../../bench/process_usage.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { memoryOf } from '../support/process_tree.ts';

/** What the bench reports of a server, from the files of the kernel. */

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), 'authrealm-usage-'));

afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a script behind a shell, as a child of a child, and reads its usage after each line that it prints. */
async function usageBetweenLines(script: string): Promise<readonly [number, number]> {
  const file = join(folder, 'script.mjs');
  writeFileSync(file, script);
  const child = Bun.spawn(['sh', '-c', '"$0" "$1"; exit 0', process.execPath, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = child.stdout.getReader();
  await lines.read();
  const before = usageOf(child.pid);
  child.stdin.write('go\n');
  await child.stdin.flush();
  await lines.read();
  const after = usageOf(child.pid);
  await child.stdin.end();
  await child.exited;
  return [after.cpuMicros - before.cpuMicros, after.readCalls - before.readCalls];
}

/** Waits for a line, does the work, says so, and lives on until its input ends. */
const script = (work: string) => `
  import { openSync, readSync } from 'node:fs';
  const input = process.stdin[Symbol.asyncIterator]();
  console.log('ready');
  await input.next();
  ${work}
  console.log('done');
  await input.next();`;

test('the processor time of a child process counts as that of its parent', async () => {
  const [cpuMicros] = await usageBetweenLines(
    script(`const used = () => process.cpuUsage().user + process.cpuUsage().system;
      for (const start = used(); used() - start < 300_000; );`),
  );
  expect(cpuMicros).toBeGreaterThanOrEqual(280_000);
  expect(cpuMicros).toBeLessThan(1_000_000);
});

test('each read of a file at a position counts as one call', async () => {
  const [, readCalls] = await usageBetweenLines(
    script(`const file = openSync(process.argv[1]);
      for (let at = 0; at < 5_000; at += 1) readSync(file, new Uint8Array(8), 0, 8, at % 100);`),
  );
  expect(readCalls).toBeGreaterThanOrEqual(5_000);
  expect(readCalls).toBeLessThan(5_100);
});

test('a database file is mapped as a whole below the limit of the mapping', () => {
  const path = join(folder, 'mapped.db');
  const db = connectSqlite(path);
  db.run('create table t (text)');
  for (let row = 0; row < 100; row += 1) db.run('insert into t values (?)', ['x'.repeat(10_000)]);
  db.query('select count(*), max(text) from t').get();
  expect(mappedBytes(process.pid, path)).toBeGreaterThanOrEqual(Bun.file(path).size);
  db.close();
  expect(memoryOf(process.pid).residentMb).toBeGreaterThan(10);
});
