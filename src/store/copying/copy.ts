import { Refusal } from '../../domain/fault.ts';
import { NIL_UUID } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isUnfinished, isUnfinishedCopyOf, unfinishedCopyOf } from './mark.ts';
import { comparePages, isSame, type Page } from './pages.ts';
import { inParallel } from './parallel.ts';
import type { Installation, Range, Side, Sum, Target } from './side.ts';
import { ACT, CHANGE, CLOCK, INSTANCE, TABLES, type Table } from './tables.ts';

/** What both sides hold of a table in the end. */
export interface Compared {
  readonly table: string;
  readonly source: Sum;
  readonly target: Sum;
}

export interface Copied {
  readonly tables: readonly Compared[];
  readonly added: number;
  readonly removed: number;
}

export interface CopyWatch {
  /** Ends the copy behind the pages that are under way. */
  readonly signal: AbortSignal;
  /** Is told what is done next and with how many rows, and answers who is told how many of them are done. */
  readonly onStage: (stage: 'comparing' | 'copying', rows: number) => (rows: number) => void;
}

/**
 * Makes the target hold what the source does. It compares pages of each table by their digests, and moves what differs:
 * into an empty database all of it, into an unfinished or an older copy the rest. Throws Refusal where the target holds
 * anything else; it is not written then. `run` is this copy's own name.
 */
export async function copyAll({ source, target }: Sides, run: string, watch: CopyWatch): Promise<Copied> {
  const ours = await source.installation();
  const found = await target.installation();
  await proveKin(ours, found, target);
  const marked = { ...found, storeId: unfinishedCopyOf(ours.storeId, run) };
  // A copy that has ended may be served: it is marked only where there is something to write.
  const isWhole = found.storeId === ours.storeId;
  if (!isWhole) await target.replaceInstallation(found, marked);
  const pages = await comparePages(source, target, watch);
  const differing = pages.filter((page) => !isSame(page));
  await proveBehind(differing, { source, target });
  if (isWhole && differing.length > 0) await takeOutOfService(target, found, { marked, pages });
  const counts = { added: 0, removed: 0 };
  if (differing.length > 0) {
    const job = { source, target, watch, counts, mark: marked.storeId };
    await clear(differing, job);
    await fill(differing, job);
    await target.settle();
  }
  await proveAlone(pages, target);
  const tables = TABLES.map((table) => comparedOf(table, pages));
  const there = isWhole && differing.length === 0 ? found : marked;
  if (tables.every(isSame)) await target.replaceInstallation(there, ours);
  const installation = {
    table: INSTANCE.name,
    source: await source.sum(INSTANCE, WHOLE),
    target: await target.sum(INSTANCE, WHOLE),
  };
  return { tables: [...tables, installation], ...counts };
}

const WHOLE: Range = { after: undefined, to: undefined };

/** Throws Refusal unless the target is empty or a copy of the same installation. */
async function proveKin(ours: Installation, theirs: Installation, target: Target): Promise<void> {
  if (isUnfinishedCopyOf(ours.storeId, theirs.storeId)) return;
  if (theirs.storeId === ours.storeId) {
    if (theirs.accessVersion > ours.accessVersion) throw wentOn('its clients or keys were changed');
    return;
  }
  if (isUnfinished(theirs.storeId)) {
    throw new Refusal('the target is an unfinished copy of another installation: name an empty database');
  }
  for (const table of TABLES) {
    if ((await target.count(table)) === 0) continue;
    throw new Refusal(
      `the target holds another installation (table ${table.name} is not empty): name an empty database`,
    );
  }
}

/** Throws Refusal where the target has changes, acts, clients or keys that the source has not: they would be lost. */
async function proveBehind(pages: readonly Page[], { source, target }: Sides): Promise<void> {
  let isTooOld: ((table: Table, row: string) => boolean) | undefined;
  for (const { table, range, target: there } of pages) {
    if (!table.lasting || there.rows === 0) continue;
    const told = sayerOf(table.lasting);
    const ours = new Set((await source.rows(table, range)).map(told));
    const own = (await target.rows(table, range)).filter((row) => !ours.has(told(row)));
    if (own.length === 0) continue;
    isTooOld ??= await removedByAge({ source, target });
    for (const row of own) {
      if (!isTooOld(table, row)) throw wentOn(`table ${table.name} has rows of its own`);
    }
  }
}

/**
 * Makes what tells whether an entry of the target stood in the source as well, which has removed its oldest ones since. That
 * is known where the target has younger ones too: they are compared.
 */
async function removedByAge({ source, target }: Sides): Promise<(table: Table, row: string) => boolean> {
  const [ours, theirs] = [await clocksOf(source), await clocksOf(target)];
  return (table, row) => {
    if (table !== CHANGE && table !== ACT) return false;
    const entry = JSON.parse(row) as { readonly realm_id: string; readonly seq: number };
    const log = table === ACT ? NIL_UUID : entry.realm_id;
    const { anchor_entries, anchor_seq } = ours.get(log) ?? {};
    const removed = anchor_entries ? (anchor_seq ?? 0) : 0;
    return entry.seq <= removed && (theirs.get(log)?.seq ?? 0) > removed;
  };
}

interface Clock {
  readonly realm_id: string;
  readonly seq: number;
  readonly anchor_seq: number | null;
  readonly anchor_entries: number | null;
}

async function clocksOf(side: Side): Promise<ReadonlyMap<string, Clock>> {
  const clocks = (await side.rows(CLOCK, WHOLE)).map((row) => JSON.parse(row) as Clock);
  return new Map(clocks.map((clock) => [clock.realm_id, clock]));
}

/** Marks a copy that may be served by now. Throws Refusal, and leaves it as it was, where it was written to meanwhile. */
async function takeOutOfService(
  target: Target,
  found: Installation,
  { marked, pages }: { readonly marked: Installation; readonly pages: readonly Page[] },
): Promise<void> {
  await target.replaceInstallation(found, marked);
  try {
    // By then every service has noticed the mark.
    await Bun.sleep(LIMITS.accessAgeMsMax);
    await proveAlone(pages, target);
  } catch (error) {
    await target.replaceInstallation(marked, found);
    throw error;
  }
}

/** Throws Refusal where somebody else has written to the target. Each write of a service leaves a change or an act. */
async function proveAlone(pages: readonly Page[], target: Target): Promise<void> {
  for (const table of [CHANGE, ACT]) {
    const rows = pages.reduce((sum, page) => sum + (page.table === table ? page.target.rows : 0), 0);
    if ((await target.count(table)) !== rows) throw writtenMeanwhile();
  }
}

function writtenMeanwhile(): Refusal {
  return new Refusal('somebody wrote to the target meanwhile: stop who does, and run the same command again');
}

function wentOn(how: string): Refusal {
  return new Refusal(
    `the target was written to since it was copied (${how}), and what was written would be lost: copy the other way, ` +
      'or name an empty database',
  );
}

interface Sides {
  readonly source: Side;
  readonly target: Target;
}

interface Job extends Sides {
  /** What the target is called while it is written. */
  readonly mark: string;
  readonly watch: CopyWatch;
  readonly counts: { added: number; removed: number };
}

/** The rows of the target in a page. Throws Refusal where they are no longer those that were compared. */
async function comparedRows({ table, range, target: compared }: Page, target: Target) {
  if (compared.rows === 0) return [];
  const rows = await target.rows(table, range);
  if (!isSame({ source: compared, target: await target.sum(table, range) })) throw writtenMeanwhile();
  return rows;
}

/** Removes what is in the way, the rows that refer to others first. Of tables that others refer to, what is gone. */
async function clear(pages: readonly Page[], { source, target, mark, watch, counts }: Job): Promise<void> {
  const byTable = Map.groupBy(
    pages.filter((page) => page.target.rows > 0),
    ({ table }) => table,
  );
  for (const table of TABLES.toReversed()) {
    await inParallel(byTable.get(table) ?? [], watch.signal, async (page) => {
      const [ours, theirs] = await Promise.all([source.rows(table, page.range), comparedRows(page, target)]);
      const kept = table.isReferredTo ? new Set(ours.map(sayerOf(table.key))) : new Set(ours);
      const told = table.isReferredTo ? sayerOf(table.key) : (row: string) => row;
      const gone = theirs.filter((row) => !kept.has(told(row)));
      if (gone.length === 0) return;
      await target.remove({ table, rows: gone, mark });
      page.target = await target.sum(table, page.range);
      counts.removed += gone.length;
    });
  }
}

/** Adds what is missing, the rows that others refer to first, and reads each page again. */
async function fill(pages: readonly Page[], { source, target, mark, watch, counts }: Job): Promise<void> {
  const tell = watch.onStage(
    'copying',
    pages.reduce((sum, page) => sum + page.source.rows, 0),
  );
  const byTable = Map.groupBy(pages, ({ table }) => table);
  for (const table of TABLES) {
    await inParallel(byTable.get(table) ?? [], watch.signal, async (page) => {
      const ours = await source.rows(table, page.range);
      const theirs = new Set(await comparedRows(page, target));
      const missing = theirs.size === 0 ? ours : ours.filter((row) => !theirs.has(row));
      if (missing.length > 0) await target.put({ table, rows: missing, mark });
      counts.added += missing.length;
      page.target = await target.sum(table, page.range);
      tell(page.source.rows);
    });
  }
}

/** Says what stands in some columns of a row. */
function sayerOf(columns: readonly string[]): (row: string) => string {
  return (row) => {
    const said = JSON.parse(row) as Record<string, unknown>;
    return JSON.stringify(columns.map((column) => said[column]));
  };
}

/** The digest of a table is that of the digests of its pages, which begin where the source's rows say. */
function comparedOf(table: Table, pages: readonly Page[]): Compared {
  const own = pages.filter((page) => page.table === table);
  const sumOf = (sums: readonly Sum[]): Sum => ({
    rows: sums.reduce((rows, sum) => rows + sum.rows, 0),
    digest: new Bun.CryptoHasher('sha256').update(sums.map(({ digest }) => digest).join('\n')).digest('hex'),
  });
  return {
    table: table.name,
    source: sumOf(own.map(({ source }) => source)),
    target: sumOf(own.map(({ target }) => target)),
  };
}
