import { Database } from 'bun:sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readableStreamToText, SQL } from 'bun';
import { prepareBare } from '../../bench/bare_inserts.ts';
import { COPIED_TABLES, INSTANCE } from '../../src/store/copying/tables.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { startCluster } from '../support/citus_cluster.ts';
import { populationLines, REALM } from '../support/population.ts';
import { endServers, startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/**
 * Copies a file with millions of records to PostgreSQL or a Citus cluster and back. Each copy is killed half way and
 * run again. Both must print the same checksums, and both files must hold the same rows.
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
const POLL_MS = 50;

/** Writes the population with its changes into a database that has a client and keys. */
async function fill(path: string): Promise<void> {
  const words = ['--name', 'n', '--scope', 'profile-infos:read', '--database', `sqlite:${path}`];
  const { code, stderr } = await runCommand([AUTHREALM, 'client', 'create', ...words]);
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
  db.query('insert into realm_clock (realm_id, seq) values (?, ?)').run(REALM, count);
  db.run('commit');
  db.close();
}

interface CopyResult {
  /** A line per table: rows and checksum. */
  readonly checksums: string;
  readonly added: number;
  readonly seconds: number;
}

const command = (from: string, to: string) => [AUTHREALM, 'copy', '--yes', '--from', from, '--to', to];

async function runCopy(from: string, to: string): Promise<CopyResult> {
  const since = performance.now();
  const { code, stdout, stderr } = await runCommand(command(from, to));
  if (code !== 0) throw new Error(`${stdout}${stderr}`);
  const [, checksums = ''] = /^(table .*?)^equal;/ms.exec(stdout) ?? [];
  const added = Number(/^source and target are equal; (\d+) rows added, 0 removed$/m.exec(stdout)?.[1]);
  return { checksums, added, seconds: (performance.now() - since) / 1_000 };
}

/** Runs a copy until it copies the first changes, after all records and half of the rows; then kills it. */
async function killHalfWay(from: string, to: string, isHalfWay: () => Promise<boolean>): Promise<number> {
  const since = performance.now();
  const child = Bun.spawn(command(from, to), { stdio: ['ignore', 'ignore', 'pipe'] });
  const errors = readableStreamToText(child.stderr);
  while (child.exitCode === null && !(await isHalfWay())) await Bun.sleep(POLL_MS);
  child.kill('SIGKILL');
  await child.exited;
  if (child.signalCode !== 'SIGKILL') throw new Error(`the copy ended before it was killed: ${await errors}`);
  return (performance.now() - since) / 1_000;
}

const HAS_CHANGES = 'select 1 from log_entry limit 1';

async function hasChangesIn(sql: SQL): Promise<boolean> {
  return sql.unsafe(HAS_CHANGES).then(
    (rows) => rows.length > 0,
    // The tables do not exist yet.
    () => false,
  );
}

async function hasChangesAt(path: string): Promise<boolean> {
  try {
    const db = new Database(path, { readonly: true });
    try {
      return db.query(HAS_CHANGES).get() !== null;
    } finally {
      db.close();
    }
  } catch {
    return false;
  }
}

interface KilledCopyResult extends CopyResult {
  /** Duration of the killed run and the one after it. */
  readonly totalSeconds: number;
}

async function copyWithKill(
  what: string,
  { from, to }: { readonly from: string; readonly to: string },
  isHalfWay: () => Promise<boolean>,
): Promise<KilledCopyResult> {
  const first = await killHalfWay(from, to, isHalfWay);
  const rest = await runCopy(from, to);
  console.log(
    `${what}: killed after ${Math.round(first)} s, finished in ${Math.round(rest.seconds)} s more with ${rest.added} rows`,
  );
  return { ...rest, totalSeconds: first + rest.seconds };
}

/** Number of rows that only one of the files has. */
function differences(): number {
  const db = new Database(after, { readwrite: true });
  db.run('attach ? as other', [before]);
  let count = 0;
  for (const { name, columns } of [INSTANCE, ...COPIED_TABLES]) {
    const [ours, theirs] = [
      `select ${columns.join()} from main.${name}`,
      `select ${columns.join()} from other.${name}`,
    ];
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
  const sql = new SQL(url, { max: 1 });
  const there = await copyWithKill(`to ${options.engine}`, { from: `sqlite:${before}`, to: url }, () =>
    hasChangesIn(sql),
  );
  await sql.close();
  const back = await copyWithKill('back', { from: url, to: `sqlite:${after}` }, () => hasChangesAt(after));
  const found = differences();
  const isFine = there.checksums === back.checksums && found === 0;
  const seconds = [there.totalSeconds, back.totalSeconds].map(Math.round);
  console.log(
    `${records} records to ${options.engine} in ${seconds[0]} s and back in ${seconds[1]} s, each killed once: ` +
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
