import { Database } from 'bun:sqlite';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackDetail } from '../../src/log/packed_detail.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { eventResource } from '../../src/model/log/event.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { findProblems, type KillTarget, killAfter, missingIds } from './killed_process.ts';
import { withChanges } from './log_rows.ts';
import { populationLines } from './population.ts';
import { AUTHREALM, runCommand, startCommand } from './processes.ts';

const REJECTED_LINE = '{"type":"acknowledgement"}';

/** The exit code after all lines were read and some were rejected. */
const DONE_WITH_REJECTIONS = 3;

/**
 * A file of lines in which every commit ends with a rejected line. The import prints the rejection after the commit, which
 * acknowledges all lines before it.
 */
export function acknowledgedLines(users: number): readonly string[] {
  const file: string[] = [];
  for (const group of populationLines(users)) {
    for (const line of group.split('\n')) {
      if (file.length % LIMITS.importCommitLines === LIMITS.importCommitLines - 1) file.push(REJECTED_LINE);
      file.push(line);
    }
  }
  return [...file, REJECTED_LINE];
}

/** The last line that an import has acknowledged on standard error; 0 for none. */
export function lastAcknowledged(stderr: string): number {
  return Number([...stderr.matchAll(/^line (\d+): .*\n/gm)].at(-1)?.[1] ?? 0);
}

/**
 * An import of the whole file, started again after each kill. One that reaches the end must have the same result as an
 * import that was not killed.
 */
export async function importTarget(folder: string, users: number): Promise<KillTarget> {
  const file = acknowledgedLines(users);
  const source = join(folder, 'lines.ndjson');
  writeFileSync(source, `${file.join('\n')}\n`);
  const command = (path: string) => [
    ...[AUTHREALM, 'import', source, '--on-error', 'skip'],
    ...['--database', `sqlite:${path}`],
  ];
  await restart(join(folder, 'whole.db'));
  const whole = await wholeImport(command(join(folder, 'whole.db')), join(folder, 'whole.db'));
  const path = join(folder, 'import.db');
  let acknowledged = await restart(path);
  return {
    name: 'import',
    async round(chance) {
      if (chance() < 0.2) acknowledged = await restart(path);
      const { stderr, code, isKilled } = await killAfter(command(path), chance() * whole.milliseconds);
      if (!isKilled && code !== DONE_WITH_REJECTIONS)
        return { acknowledged: 0, problems: [`the import exited: ${stderr}`] };
      const last = lastAcknowledged(stderr);
      acknowledged = Math.max(acknowledged, last);
      const complaints = [...(await findProblems(path)), ...lostLines(path, file.slice(0, acknowledged))];
      if (!isKilled && digestOf(path) !== whole.digest)
        complaints.push('the result differs from that of an import that was not killed');
      if (!isKilled) acknowledged = await restart(path);
      return { acknowledged: last, problems: complaints };
    },
  };
}

async function wholeImport(command: readonly string[], path: string) {
  const start = performance.now();
  const { code, stderr } = await runCommand(command);
  if (code !== DONE_WITH_REJECTIONS) throw new Error(`the import failed: ${stderr}`);
  return { milliseconds: performance.now() - start, digest: digestOf(path) };
}

/** Creates the database again, by the first start of a service. Returns 0, as no line is acknowledged. */
async function restart(path: string): Promise<number> {
  for (const ending of ['', '-wal', '-shm', '.key', '.checkpoints'])
    rmSync(`${path}${ending}`, { force: true });
  const service = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
  await service.line(/^listening on /);
  await service.stop();
  return 0;
}

function lostLines(path: string, acknowledged: readonly string[]): string[] {
  const ids = acknowledged
    .filter((line) => line !== REJECTED_LINE)
    .map((line) => JSON.parse(line).id as string);
  const lost = missingIds(path, ids);
  return lost.length === 0 ? [] : [`${lost.length} of ${ids.length} acknowledged records are lost`];
}

/** A hash of records and changes without the values that differ in every run. */
function digestOf(path: string): string {
  const db = new Database(path, { readwrite: true });
  const hash = new Bun.CryptoHasher('sha256');
  const add = (text: string, comparable: (row: Row) => Row) => {
    // Tables of both kinds are stored in the order of their keys.
    for (const row of db.query<Row, []>(text).iterate()) {
      const { revision: _, at: __, origin: ___, tag: ____, ...rest } = row;
      hash.update(JSON.stringify(comparable(rest)));
    }
  };
  for (const { table } of RESOURCES) add(`select * from ${table}`, (row) => row);
  add(`${withChanges('sqlite')} select * from change order by realm_id, seq`, comparableChange);
  db.close();
  return hash.digest('hex');
}

type Row = Readonly<Record<string, unknown>>;

/** Encrypted values differ in every run, their presence does not. */
function comparableChange({ detail, personal, ...rest }: Row): Row {
  const bytes = detail instanceof Uint8Array ? detail : undefined;
  const { after, before } = bytes ? unpackDetail(eventResource(String(rest.event)), bytes) : {};
  return { ...rest, after: { ...after, origin: undefined }, before, personal: personal !== null };
}
