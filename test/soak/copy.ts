import { Database } from 'bun:sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareBare } from '../../bench/bare_inserts.ts';
import { COPIED_TABLES } from '../../src/ops/store/copying/side.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { startCluster } from '../support/citus_cluster.ts';
import { populationLines, REALM } from '../support/population.ts';
import { endServers, startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';

/**
 * Copies a file with millions of records to PostgreSQL or a Citus cluster and back. Each copy is killed once it
 * has written all rows, and run again from zero. Both must print the same checksums, and both files must hold the same rows.
 */
const { values: options } = parseArgs({
  options: { engine: { type: 'string', default: 'postgres' }, users: { type: 'string', default: '1000000' } },
});
const freshDatabases: Readonly<Record<string, () => Promise<string>>> = {
  postgres: async () => (await startServer()).freshDatabase(),
  citus: async () => (await startCluster()).emptyDatabase(),
};
const freshDatabase = freshDatabases[options.engine];
if (!freshDatabase) {
  console.error(`--engine must be one of ${Object.keys(freshDatabases).join(', ')}`);
  process.exit(2);
}
const users = Number(options.users);
const records = 3 + 3 * users;
const folder = mkdtempSync(join(tmpdir(), 'authrealm-copy-'));
const [before, after] = [join(folder, 'before.db'), join(folder, 'after.db')];

const COMMIT_LINES = 30_000;

/** Writes the population with its changes into a database that has a client and keys. */
async function fill(path: string): Promise<void> {
  const { code, stderr } = await runCommand([AUTHREALM, 'init', '--database', `sqlite:${path}`]);
  if (code !== 0) throw new Error(stderr);
  const db = connectSqlite(path);
  db.run('pragma synchronous = off');
  const insertsOf = prepareBare(db);
  let count = 0;
  db.run('begin');
  for (const group of populationLines(users)) {
    for (const line of group.split('\n')) {
      for (const { statement, values } of insertsOf(line)) statement.run(...values);
      count += 1;
      if (count % COMMIT_LINES === 0) db.run('commit; begin');
    }
  }
  db.query('update realm_clock set seq = ? where realm_id = ?').run(count, REALM);
  db.run('commit');
  db.close();
}

interface CopyResult {
  /** A line per table: rows and checksum. */
  readonly checksums: string;
  readonly seconds: number;
}

const command = (from: string, to: string) => [AUTHREALM, 'copy', '--from', from, '--to', to];

async function runCopy(from: string, to: string): Promise<CopyResult> {
  const since = performance.now();
  const { code, stdout, stderr } = await runCommand(command(from, to));
  if (code !== 0) throw new Error(`${stdout}${stderr}`);
  const [, checksums = ''] = /^(table .*?)^source and target are equal:/ms.exec(stdout) ?? [];
  return { checksums, seconds: (performance.now() - since) / 1_000 };
}

/** Runs a copy until it has written all rows, kills it, and runs it again. */
async function copyWithKill(what: string, from: string, to: string): Promise<CopyResult> {
  const since = performance.now();
  const killed = startCommand(command(from, to));
  await killed.line(/^comparing$/);
  killed.process.kill('SIGKILL');
  await killed.process.exited;
  const seconds = (performance.now() - since) / 1_000;
  const complete = await runCopy(from, to);
  console.log(
    `${what}: killed after ${Math.round(seconds)} s, then copied in ${Math.round(complete.seconds)} s`,
  );
  return complete;
}

/** Selects the copied columns of a table, with the IDs of realms for their numbers: a copy assigns new numbers. */
function rowsOf(schema: string, { name, copied }: (typeof COPIED_TABLES)[number]): string {
  const columns = [...copied].map(([column, kind]) =>
    kind === 'realm' ? `(select realm_id from ${schema}.realm_clock where number = t.${column})` : column,
  );
  return `select ${columns.join()} from ${schema}.${name} as t`;
}

/** Number of rows that only one of the files has. */
function differences(): number {
  const db = new Database(after, { readwrite: true });
  db.run('attach ? as other', [before]);
  let count = 0;
  for (const table of COPIED_TABLES) {
    const [ours, theirs] = [rowsOf('main', table), rowsOf('other', table)];
    for (const [one, two] of [
      [ours, theirs],
      [theirs, ours],
    ]) {
      count += db.query<{ n: number }, []>(`select count(*) as n from (${one} except ${two})`).get()?.n ?? 0;
    }
  }
  db.close();
  return count;
}

async function copyBothWays(url: string): Promise<boolean> {
  await fill(before);
  const there = await copyWithKill(`to ${options.engine}`, `sqlite:${before}`, url);
  const back = await copyWithKill('back', url, `sqlite:${after}`);
  const found = differences();
  const isFine = there.checksums === back.checksums && found === 0;
  const seconds = [there, back].map((each) => Math.round(each.seconds));
  console.log(
    `${records} records to ${options.engine} in ${seconds[0]} s and back in ${seconds[1]} s: ` +
      (isFine ? 'the same rows' : `${found} rows differ`),
  );
  return isFine;
}

try {
  process.exitCode = (await copyBothWays(await freshDatabase())) ? 0 : 1;
} finally {
  await endServers();
  rmSync(folder, { recursive: true, force: true });
}
