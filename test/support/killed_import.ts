import { Database } from 'bun:sqlite';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../src/domain/limits.ts';
import { RESOURCES } from '../../src/domain/resources.ts';
import { findProblems, type KillTarget, killAfter, missingIds } from './killed_process.ts';
import { populationLines } from './population.ts';
import { AUTHREALM, runCommand } from './processes.ts';

const REFUSED = '{"type":"acknowledgement"}';

/** All lines are done; some were refused. */
const DONE = 3;

/**
 * A file of lines whose every commit ends with a line that is refused. The import tells it after that commit, and so
 * acknowledges all lines before it.
 */
export function acknowledgedLines(users: number): readonly string[] {
  const file: string[] = [];
  for (const group of populationLines(users)) {
    for (const line of group.split('\n')) {
      if (file.length % LIMITS.importCommitLines === LIMITS.importCommitLines - 1) file.push(REFUSED);
      file.push(line);
    }
  }
  return [...file, REFUSED];
}

/** The last line that an import has acknowledged, by what it wrote to standard error; 0 for none. */
export function lastAcknowledged(stderr: string): number {
  return Number([...stderr.matchAll(/^line (\d+): .*\n/gm)].at(-1)?.[1] ?? 0);
}

/**
 * An import that goes on where the one before was killed, by running the whole file again. One that reaches the end
 * has to leave what an import leaves that nobody killed.
 */
export async function importTarget(folder: string, users: number): Promise<KillTarget> {
  const file = acknowledgedLines(users);
  const source = join(folder, 'lines.ndjson');
  writeFileSync(source, `${file.join('\n')}\n`);
  const command = (path: string) => [
    ...[AUTHREALM, 'import', source, '--on-error', 'skip'],
    ...['--database', `sqlite:${path}`],
  ];
  const whole = await wholeImport(command(join(folder, 'whole.db')), join(folder, 'whole.db'));
  const path = join(folder, 'import.db');
  let acknowledged = 0;
  return {
    name: 'import',
    async round(chance) {
      if (chance() < 0.2) acknowledged = begin(path);
      const { stderr, code, isKilled } = await killAfter(command(path), chance() * whole.milliseconds);
      if (!isKilled && code !== DONE) return { acknowledged: 0, problems: [`it ended by itself: ${stderr}`] };
      const last = lastAcknowledged(stderr);
      acknowledged = Math.max(acknowledged, last);
      const complaints = [...(await findProblems(path)), ...lostLines(path, file.slice(0, acknowledged))];
      if (!isKilled && digestOf(path) !== whole.digest)
        complaints.push('the end differs from an unkilled one');
      if (!isKilled) acknowledged = begin(path);
      return { acknowledged: last, problems: complaints };
    },
  };
}

async function wholeImport(command: readonly string[], path: string) {
  const start = performance.now();
  const { code, stderr } = await runCommand(command);
  if (code !== DONE) throw new Error(`the import failed: ${stderr}`);
  return { milliseconds: performance.now() - start, digest: digestOf(path) };
}

/** Begins anew, with no database and nothing acknowledged. */
function begin(path: string): 0 {
  for (const ending of ['', '-wal', '-shm', '.key']) rmSync(`${path}${ending}`, { force: true });
  return 0;
}

function lostLines(path: string, acknowledged: readonly string[]): string[] {
  const ids = acknowledged.filter((line) => line !== REFUSED).map((line) => JSON.parse(line).id as string);
  const lost = missingIds(path, ids);
  return lost.length === 0 ? [] : [`${lost.length} of ${ids.length} acknowledged records are lost`];
}

/** What the log tells of a change: what is encrypted is new with every run, that something is there is not. */
function toldIn({ detail, personal }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (typeof detail !== 'string') return {};
  const told = JSON.parse(detail, (name, value) => (name === 'origin' ? undefined : value));
  return { detail: told, personal: personal !== null };
}

/** Of everything that an import decides: records and changes, but for what is new with every run. */
function digestOf(path: string): string {
  const db = new Database(path, { readwrite: true });
  const hash = new Bun.CryptoHasher('sha256');
  for (const table of [...RESOURCES.map((resource) => resource.table), 'change']) {
    // Both kinds of table are kept in the order of their keys.
    for (const row of db.query<Record<string, unknown>, []>(`select * from ${table}`).iterate()) {
      const { revision: _, at: __, origin: ___, tag: ____, ...decided } = row;
      hash.update(JSON.stringify({ ...decided, ...toldIn(row) }));
    }
  }
  db.close();
  return hash.digest('hex');
}
