import { Database } from 'bun:sqlite';
import { RESOURCES } from '../../src/model/resources.ts';
import { findInconsistencies } from './consistency.ts';
import { idText } from './log_rows.ts';
import { AUTHREALM, runCommand } from './processes.ts';

/** The state of a database after a kill. */
export interface KillResult {
  readonly acknowledged: number;
  /** In sentences. */
  readonly problems: readonly string[];
}

/** A process that writes to a database and is killed. */
export interface KillTarget {
  readonly name: string;
  /** Starts it, kills it at a random moment, and checks the database. */
  round(chance: () => number): Promise<KillResult>;
}

/** Runs a command and kills it after these milliseconds, unless it exits before. */
export async function killAfter(command: readonly string[], milliseconds: number) {
  const env = { PATH: process.env.PATH ?? '' };
  const child = Bun.spawn([...command], { stdio: ['ignore', 'pipe', 'pipe'], env });
  const output = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const timer = setTimeout(() => child.kill('SIGKILL'), milliseconds);
  const code = await child.exited;
  clearTimeout(timer);
  const [stdout, stderr] = await output;
  return { stdout, stderr, code, isKilled: child.signalCode === 'SIGKILL' };
}

/** Problems of a database: it does not open, is damaged, or records and changes are inconsistent. */
export async function findProblems(path: string): Promise<readonly string[]> {
  const database = ['--database', `sqlite:${path}`];
  const opened = await runCommand([AUTHREALM, 'client', 'list', ...database]);
  if (opened.code !== 0) return [`the database does not open: ${opened.stderr}`];
  const doctor = await runCommand([AUTHREALM, 'doctor', ...database]);
  const findings = doctor.code === 0 ? [] : [`doctor: ${doctor.stdout}${doctor.stderr}`];
  return [...findInconsistencies(path), ...findings];
}

/** The IDs that no record has. */
export function missingIds(path: string, ids: Iterable<string>): readonly string[] {
  const found = idsIn(path);
  return [...ids].filter((id) => !found.has(id));
}

/** The IDs of all records. */
export function idsIn(path: string): ReadonlySet<string> {
  const db = new Database(path, { readwrite: true });
  try {
    const tables = RESOURCES.map(
      ({ table, parent }) => `select ${idText('sqlite', parent ? 'id' : 'realm_id')} as id from ${table}`,
    );
    const rows = db.query<{ id: string }, []>(tables.join(' union all ')).all();
    return new Set(rows.map(({ id }) => id));
  } finally {
    db.close();
  }
}
