import { Refusal } from '../../domain/fault.ts';
import type { CopySource, CopyTarget, Installation, KeyRange, PrimaryKey, RangeDigest } from './port.ts';
import { type CopiedTable, INSTANCE, TABLES } from './tables.ts';
import { assertMarked, isUnfinished, isUnfinishedCopyOf, unfinishedCopyOf } from './unfinished_copy.ts';

/** What both sides hold of a table in the end. */
export interface TableComparison {
  readonly table: string;
  readonly source: RangeDigest;
  readonly target: RangeDigest;
}

export interface CopyResult {
  readonly tables: readonly TableComparison[];
  readonly added: number;
  readonly removed: number;
}

export interface CopyRun {
  /** Tells this run from every other copy into the target. */
  readonly id: string;
  /** The target stays an unfinished copy, which a later run brings up to date. */
  readonly isPreparation: boolean;
  /** Ends the copy after the pages that are in progress. */
  readonly signal: AbortSignal;
  /** Called with the next stage and its number of rows; returns a function to call with rows that are done. */
  readonly onStage: (stage: 'comparing' | 'copying', rows: number) => (rows: number) => void;
}

interface Sides {
  readonly source: CopySource;
  readonly target: CopyTarget;
}

/**
 * Makes the target hold what the source does. It compares pages of each table by their digests, and moves the rows that
 * differ: all of them into an empty target, the rest into an unfinished copy. Throws Refusal where the target holds
 * anything else; it is not written then.
 */
export async function copyAll({ source, target }: Sides, run: CopyRun): Promise<CopyResult> {
  const installation = await source.installation();
  const found = await target.installation();
  await assertCopyable(installation, found, target);
  const marked = { ...found, storeId: unfinishedCopyOf(installation.storeId, run.id) };
  assertMarked(await target.replaceInstallation(found, marked));
  const pages = await comparePages({ source, target }, run);
  const differing = pages.filter((page) => !isEqual(page));
  const counts = { added: 0, removed: 0 };
  if (differing.length > 0) {
    const job = { source, target, run, counts, mark: marked.storeId };
    await clear(differing, job);
    await fill(differing, job);
    await target.analyze();
  }
  const tables = TABLES.map((table) => comparedOf(table, pages));
  if (run.isPreparation || !tables.every(isEqual)) return { tables, ...counts };
  assertMarked(await target.replaceInstallation(marked, installation));
  const instance = {
    table: INSTANCE.name,
    source: await source.sum(INSTANCE, WHOLE),
    target: await target.sum(INSTANCE, WHOLE),
  };
  return { tables: [...tables, instance], ...counts };
}

const WHOLE: KeyRange = { after: undefined, to: undefined };

/** Throws Refusal unless the target is empty or an unfinished copy of the same installation. */
async function assertCopyable(ours: Installation, theirs: Installation, target: CopyTarget): Promise<void> {
  if (isUnfinishedCopyOf(ours.storeId, theirs.storeId)) return;
  if (isUnfinished(theirs.storeId))
    throw new Refusal('the target is an unfinished copy of another installation: name an empty database');
  for (const table of TABLES) {
    if ((await target.count(table)) === 0) continue;
    throw new Refusal(
      `the target is not empty (table ${table.name}): name an empty database, or one that was prepared from the same ` +
        'source by --prepare',
    );
  }
}

/** A part of a table, and what both sides hold of it. */
interface Page {
  readonly table: CopiedTable;
  readonly range: KeyRange;
  source: RangeDigest;
  /** Read again after each write to the page. */
  target: RangeDigest;
}

const NOTHING: RangeDigest = { rows: 0, digest: new Bun.CryptoHasher('sha256').update('').digest('hex') };

export function isEqual({
  source,
  target,
}: {
  readonly source: RangeDigest;
  readonly target: RangeDigest;
}): boolean {
  return source.rows === target.rows && source.digest === target.digest;
}

/** Every page of every table, in the order of the tables and of the keys. */
async function comparePages(
  { source, target }: Sides,
  { signal, onStage }: CopyRun,
): Promise<readonly Page[]> {
  const counts = await Promise.all(TABLES.map((table) => source.count(table)));
  const report = onStage(
    'comparing',
    counts.reduce((sum, count) => sum + count, 0),
  );
  const pages: Page[] = [];
  for (const table of TABLES) {
    const isEmpty = (await target.count(table)) === 0;
    await inParallel(rangesOf(table, source), signal, async (range) => {
      // Ranges come in their order, so the pages stand in it as well.
      const page: Page = { table, range, source: NOTHING, target: NOTHING };
      pages.push(page);
      [page.source, page.target] = await Promise.all([
        source.sum(table, range),
        isEmpty ? NOTHING : target.sum(table, range),
      ]);
      report(page.source.rows);
    });
  }
  return pages;
}

/** Ranges that leave out no key there may be. */
async function* rangesOf(table: CopiedTable, source: CopySource): AsyncGenerator<KeyRange> {
  let after: PrimaryKey | undefined;
  for (;;) {
    const to = await source.pageEnd(table, after);
    yield { after, to };
    if (to === undefined) return;
    after = to;
  }
}

/** How many pages are in progress at once. */
const PAGES_AT_ONCE = 4;

/**
 * Works on items, some of them at once. After the first error, or with the signal, no more work is begun, and what is in
 * progress ends first.
 */
async function inParallel<T>(
  items: AsyncIterable<T> | Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  // One generator for all workers: it answers one after the other, and ends for all with the first that leaves.
  const queue = (async function* () {
    yield* items;
  })();
  async function worker(): Promise<void> {
    for await (const item of queue) {
      if (signal.aborted) return;
      await work(item);
      // An engine that answers at once leaves no turn to signals and to other connections.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: PAGES_AT_ONCE }, worker));
  const failed = ended.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  if (signal.aborted)
    throw new Refusal('the copy was interrupted: run the same command again, which goes on from there');
}

interface Job extends Sides {
  readonly run: CopyRun;
  /** What the target is called while it is written. */
  readonly mark: string;
  readonly counts: { added: number; removed: number };
}

const rowsOf = (
  side: CopySource,
  { table, range }: Page,
  { rows }: RangeDigest,
): Promise<readonly string[]> => (rows === 0 ? Promise.resolve([]) : side.rows(table, range));

/**
 * Removes rows that are in the way, those that refer to others first. Of a table that others refer to, rows that are gone;
 * changed ones are replaced where they are.
 */
async function clear(pages: readonly Page[], { source, target, mark, run, counts }: Job): Promise<void> {
  const byTable = Map.groupBy(
    pages.filter((page) => page.target.rows > 0),
    ({ table }) => table,
  );
  for (const table of TABLES.toReversed()) {
    const identity = table.isReferredTo ? keyIn(table) : (row: string) => row;
    await inParallel(byTable.get(table) ?? [], run.signal, async (page) => {
      const [ours, theirs] = await Promise.all([
        rowsOf(source, page, page.source),
        rowsOf(target, page, page.target),
      ]);
      const kept = new Set(ours.map(identity));
      const gone = theirs.filter((row) => !kept.has(identity(row)));
      if (gone.length === 0) return;
      await target.remove({ table, rows: gone, mark });
      page.target = await target.sum(table, page.range);
      counts.removed += gone.length;
    });
  }
}

/** Adds rows that are missing, those that others refer to first, and reads each page again. */
async function fill(pages: readonly Page[], { source, target, mark, run, counts }: Job): Promise<void> {
  const report = run.onStage(
    'copying',
    pages.reduce((sum, page) => sum + page.source.rows, 0),
  );
  const byTable = Map.groupBy(pages, ({ table }) => table);
  for (const table of TABLES) {
    await inParallel(byTable.get(table) ?? [], run.signal, async (page) => {
      const ours = await rowsOf(source, page, page.source);
      const theirs = new Set(await rowsOf(target, page, page.target));
      const missing = ours.filter((row) => !theirs.has(row));
      if (missing.length > 0) await target.put({ table, rows: missing, mark });
      counts.added += missing.length;
      page.target = await target.sum(table, page.range);
      report(page.source.rows);
    });
  }
}

/** Returns the key in a row. */
function keyIn({ key }: CopiedTable): (row: string) => string {
  return (row) => {
    const columns = JSON.parse(row) as Record<string, unknown>;
    return JSON.stringify(key.map((column) => columns[column]));
  };
}

/** The digest of a table is that of the digests of its pages, which begin where the source's rows say. */
function comparedOf(table: CopiedTable, pages: readonly Page[]): TableComparison {
  const own = pages.filter((page) => page.table === table);
  const sumOf = (sums: readonly RangeDigest[]): RangeDigest => ({
    rows: sums.reduce((rows, sum) => rows + sum.rows, 0),
    digest: new Bun.CryptoHasher('sha256').update(sums.map(({ digest }) => digest).join('\n')).digest('hex'),
  });
  return {
    table: table.name,
    source: sumOf(own.map(({ source }) => source)),
    target: sumOf(own.map(({ target }) => target)),
  };
}
