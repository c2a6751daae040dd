import { Refusal } from '../../domain/fault.ts';
import type { CopySource, CopyTarget, Installation, KeyRange, PrimaryKey, RangeDigest } from './port.ts';
import { COPIED_TABLES, type CopiedTable, INSTANCE } from './tables.ts';
import { assertMarked, isUnfinished, isUnfinishedCopyOf, unfinishedCopyOf } from './unfinished_copy.ts';

/** The contents of a table on both sides after the copy. */
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
  /** Distinguishes this run from other copies into the target. */
  readonly id: string;
  /** Called before the first write to a target that has rows; rejects to leave it unchanged. */
  readonly confirm: () => Promise<void>;
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
 * Makes the target equal to the source. It compares the digests of pages of each table, and copies the rows that
 * differ: all rows into an empty target, the remaining ones into an unfinished copy. Throws Refusal, without a write,
 * where the target is anything else.
 */
export async function copyAll({ source, target }: Sides, run: CopyRun): Promise<CopyResult> {
  const installation = await source.installation();
  const found = await target.installation();
  await assertCopyable(installation, found, target);
  if (isUnfinished(found.storeId)) await run.confirm();
  const markedInstallation = { ...found, storeId: unfinishedCopyOf(installation.storeId, run.id) };
  assertMarked(await target.replaceInstallation(found, markedInstallation));
  const pages = await comparePages({ source, target }, run);
  const differing = pages.filter((page) => !hasEqualDigests(page));
  const counts = { added: 0, removed: 0 };
  if (differing.length > 0) {
    const context = { source, target, run, counts, marker: markedInstallation.storeId };
    await removeDiffering(differing, context);
    await addMissing(differing, context);
    await target.analyze();
  }
  const tables = COPIED_TABLES.map((table) => tableComparison(table, pages));
  if (!tables.every(hasEqualDigests)) return { tables, ...counts };
  assertMarked(await target.replaceInstallation(markedInstallation, installation));
  const instance = {
    table: INSTANCE.name,
    source: await source.digest(INSTANCE, WHOLE_TABLE),
    target: await target.digest(INSTANCE, WHOLE_TABLE),
  };
  return { tables: [...tables, instance], ...counts };
}

const WHOLE_TABLE: KeyRange = { after: undefined, to: undefined };

/** Throws Refusal unless the target is empty or an unfinished copy of the same installation. */
async function assertCopyable(
  sourceInstallation: Installation,
  targetInstallation: Installation,
  target: CopySource,
): Promise<void> {
  if (isUnfinishedCopyOf(sourceInstallation.storeId, targetInstallation.storeId)) return;
  if (isUnfinished(targetInstallation.storeId))
    throw new Refusal('the target is an unfinished copy of another installation: pass an empty database');
  for (const table of COPIED_TABLES) {
    if ((await target.count(table)) === 0) continue;
    throw new Refusal(`the target is not empty (table ${table.name}): pass an empty database`);
  }
}

/** A range of a table, with its digest on both sides. */
interface Page {
  readonly table: CopiedTable;
  readonly range: KeyRange;
  source: RangeDigest;
  /** Read again after each write to the page. */
  target: RangeDigest;
}

const EMPTY_RANGE: RangeDigest = { rows: 0, digest: new Bun.CryptoHasher('sha256').update('').digest('hex') };

export function hasEqualDigests({
  source,
  target,
}: {
  readonly source: RangeDigest;
  readonly target: RangeDigest;
}): boolean {
  return source.rows === target.rows && source.digest === target.digest;
}

/** Compares every page of every table. Returns them in the order of tables and keys. */
async function comparePages(
  { source, target }: Sides,
  { signal, onStage }: Pick<CopyRun, 'signal' | 'onStage'>,
): Promise<readonly Page[]> {
  const counts = await Promise.all(COPIED_TABLES.map((table) => source.count(table)));
  const report = onStage(
    'comparing',
    counts.reduce((sum, count) => sum + count, 0),
  );
  const pages: Page[] = [];
  for (const table of COPIED_TABLES) {
    const isEmpty = (await target.count(table)) === 0;
    await inParallel(rangesOf(table, source), signal, async (range) => {
      // Ranges arrive in the order of keys, so pages are pushed in that order.
      const page: Page = { table, range, source: EMPTY_RANGE, target: EMPTY_RANGE };
      pages.push(page);
      [page.source, page.target] = await Promise.all([
        source.digest(table, range),
        isEmpty ? EMPTY_RANGE : target.digest(table, range),
      ]);
      report(page.source.rows);
    });
  }
  return pages;
}

/** Consecutive ranges that together cover all possible keys. */
async function* rangesOf(table: CopiedTable, source: CopySource): AsyncGenerator<KeyRange> {
  let after: PrimaryKey | undefined;
  for (;;) {
    const to = await source.pageEnd(table, after);
    yield { after, to };
    if (to === undefined) return;
    after = to;
  }
}

const PAGES_AT_ONCE = 4;

/**
 * Processes items, PAGES_AT_ONCE at a time. After the first error or the signal it starts no more work, and waits for
 * that in progress.
 */
async function inParallel<T>(
  items: AsyncIterable<T> | Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  // One generator for all workers: it serves one at a time, and ends for all of them when the first one returns.
  const queue = (async function* () {
    yield* items;
  })();
  async function worker(): Promise<void> {
    for await (const item of queue) {
      if (signal.aborted) return;
      await work(item);
      // A synchronous engine would never yield to signals and other connections.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: PAGES_AT_ONCE }, worker));
  const failed = ended.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  if (signal.aborted)
    throw new Refusal('the copy was interrupted: run the same command again with --yes to continue');
}

interface CopyContext extends Sides {
  readonly run: CopyRun;
  /** The installation ID of the target during this run. */
  readonly marker: string;
  readonly counts: { added: number; removed: number };
}

const rowsOf = (
  side: CopySource,
  { table, range }: Page,
  { rows }: RangeDigest,
): Promise<readonly string[]> => (rows === 0 ? Promise.resolve([]) : side.rows(table, range));

/**
 * Removes rows of the target that the source does not have, referencing tables first. Changed rows of a referenced
 * table stay, and are replaced later.
 */
async function removeDiffering(
  pages: readonly Page[],
  { source, target, marker, run, counts }: CopyContext,
): Promise<void> {
  const byTable = Map.groupBy(
    pages.filter((page) => page.target.rows > 0),
    ({ table }) => table,
  );
  for (const table of COPIED_TABLES.toReversed()) {
    await inParallel(byTable.get(table) ?? [], run.signal, async (page) => {
      const [sourceRows, targetRows] = await Promise.all([
        rowsOf(source, page, page.source),
        rowsOf(target, page, page.target),
      ]);
      const removable = removableRows(table, sourceRows, targetRows);
      if (removable.length === 0) return;
      await target.remove({ table, rows: removable, marker });
      page.target = await target.digest(table, page.range);
      counts.removed += removable.length;
    });
  }
}

/** Adds missing rows, referenced tables first, and reads each page again. */
async function addMissing(
  pages: readonly Page[],
  { source, target, marker, run, counts }: CopyContext,
): Promise<void> {
  const report = run.onStage(
    'copying',
    pages.reduce((sum, page) => sum + page.source.rows, 0),
  );
  const byTable = Map.groupBy(pages, ({ table }) => table);
  for (const table of COPIED_TABLES) {
    await inParallel(byTable.get(table) ?? [], run.signal, async (page) => {
      const sourceRows = await rowsOf(source, page, page.source);
      const missing = missingRows(sourceRows, await rowsOf(target, page, page.target));
      if (missing.length > 0) await target.put({ table, rows: missing, marker });
      counts.added += missing.length;
      page.target = await target.digest(table, page.range);
      report(page.source.rows);
    });
  }
}

/** The rows of the target that the source does not have; of a referenced table, those whose key it does not have. */
function removableRows(table: CopiedTable, sourceRows: readonly string[], targetRows: readonly string[]) {
  const identity = table.isReferredTo ? keyIn(table) : (row: string) => row;
  const wanted = new Set(sourceRows.map(identity));
  return targetRows.filter((row) => !wanted.has(identity(row)));
}

function missingRows(sourceRows: readonly string[], targetRows: readonly string[]): readonly string[] {
  const existing = new Set(targetRows);
  return sourceRows.filter((row) => !existing.has(row));
}

/** Returns the key in a row. */
function keyIn({ key }: CopiedTable): (row: string) => string {
  return (row) => {
    const columns = JSON.parse(row) as Record<string, unknown>;
    return JSON.stringify(key.map((column) => columns[column]));
  };
}

/** Combines the digests of the pages of a table. The pages of both sides have the boundaries of the source. */
function tableComparison(table: CopiedTable, pages: readonly Page[]): TableComparison {
  const ownPages = pages.filter((page) => page.table === table);
  const combinedDigest = (digests: readonly RangeDigest[]): RangeDigest => ({
    rows: digests.reduce((total, { rows }) => total + rows, 0),
    digest: new Bun.CryptoHasher('sha256')
      .update(digests.map(({ digest }) => digest).join('\n'))
      .digest('hex'),
  });
  return {
    table: table.name,
    source: combinedDigest(ownPages.map(({ source }) => source)),
    target: combinedDigest(ownPages.map(({ target }) => target)),
  };
}
