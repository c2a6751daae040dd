import { Refusal } from '../../../model/fault.ts';
import type { Program } from '../../../sql/migrations.ts';
import { toRefusal } from '../../../sql/refusals.ts';
import { addressName, type DatabaseAddress } from '../open.ts';
import { openPostgresSource, openPostgresTarget } from './postgres.ts';
import {
  COPIED_TABLES,
  type CopiedTable,
  type CopySource,
  type CopyTarget,
  PAGE_ROWS,
  type TextRow,
} from './side.ts';
import { openSqliteSource, openSqliteTarget } from './sqlite.ts';

type TableDigest = Awaited<ReturnType<typeof digestOf>>;

/** Called at the start of each step; returns a function to call with numbers of rows that are done. */
export type OnCopyStep = (step: 'copying' | 'comparing' | 'committing') => (rows: number) => void;

/**
 * Copies an installation into an empty database, as of one moment and in one transaction, and compares both before the commit.
 * Throws Refusal with what to do; the target is empty then.
 */
export async function copyDatabase(
  { from, to }: Readonly<Record<'from' | 'to', DatabaseAddress>>,
  program: Program,
  onStep: OnCopyStep,
): Promise<readonly TableDigest[]> {
  await using opened = new AsyncDisposableStack();
  const source = await openNamed('source', from, () =>
    from.engine === 'sqlite' ? openSqliteSource(from.path, program) : openPostgresSource(from, program),
  );
  opened.defer(source.close);
  const target = await openNamed('target', to, () =>
    to.engine === 'sqlite' ? openSqliteTarget(to.path, program) : openPostgresTarget(to, program),
  );
  opened.defer(target.close);
  return await copyAll(source, target, onStep);
}

async function copyAll(
  source: CopySource,
  target: CopyTarget,
  onStep: OnCopyStep,
): Promise<readonly TableDigest[]> {
  for (const table of COPIED_TABLES) {
    if ((await target.read(table, undefined)).length === 0) continue;
    throw new Refusal(`the target is not empty (table ${table.name}): pass an empty database`);
  }
  const onCopied = onStep('copying');
  const copied: TableDigest[] = [];
  for (const table of COPIED_TABLES) {
    const digest = await digestOf(source, table, async (rows) => {
      await target.write(table, rows);
      onCopied(rows.length);
    });
    copied.push(digest);
  }
  const onCompared = onStep('comparing');
  for (const [at, table] of COPIED_TABLES.entries()) {
    const written = await digestOf(target, table, async (rows) => onCompared(rows.length));
    if (Bun.deepEquals(written, copied[at])) continue;
    throw new Refusal(
      `table ${table.name} of the target differs from the source, so nothing was written: pass a target without triggers ` +
        'or other changes of your own',
    );
  }
  onStep('committing');
  await target.commit();
  return copied;
}

/** Reads a table, and calls `work` with one page after the other. Returns the SHA-256 of the values in the order of the key. */
async function digestOf(
  side: CopySource,
  table: CopiedTable,
  work: (rows: readonly TextRow[]) => Promise<void>,
) {
  const hasher = new Bun.CryptoHasher('sha256');
  let rows = 0;
  for (let last: TextRow | undefined; ; ) {
    const page = await side.read(table, last);
    hasher.update(page.map((row) => `${JSON.stringify(row)}\n`).join(''));
    rows += page.length;
    if (page.length > 0) await work(page);
    if (page.length < PAGE_ROWS) return { table: table.name, rows, digest: hasher.digest('hex') };
    last = page.at(-1);
  }
}

type SideMethod = (...values: unknown[]) => Promise<unknown>;

/** Opens a side, and adds its name to the errors of that and of all of its methods. */
async function openNamed<S extends object>(
  which: 'source' | 'target',
  address: DatabaseAddress,
  open: () => Promise<S>,
): Promise<S> {
  /** `path`: for errors that name the database themselves. */
  async function named<T>(work: () => Promise<T>, path?: string): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const refusal = toRefusal(error, path);
      if (!(refusal instanceof Refusal)) throw error;
      // The advice is written for commands with one database.
      const message = refusal.message
        .replace(', or in the URL of AUTHREALM_DATABASE', '')
        .replaceAll('--database', which === 'source' ? '--from' : '--to');
      const isNamed = path !== undefined && refusal !== error;
      const name = isNamed ? which : `${which} ${addressName(address)}`;
      throw new Refusal(`the ${name}: ${message}`, { cause: error });
    }
  }

  const side = await named(open, addressName(address));
  const methods = Object.entries(side).map(([name, method]: [string, SideMethod]) => [
    name,
    (...values: unknown[]) => named(() => method(...values)),
  ]);
  return Object.fromEntries(methods) as S;
}
