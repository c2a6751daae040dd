import { Refusal } from '../../domain/fault.ts';
import { isUnfinished, unfinishedCopyOf } from './mark.ts';
import { comparePages, isSame, type Page } from './pages.ts';
import { inParallel } from './parallel.ts';
import type { Installation, Range, Side, Sum, Target } from './side.ts';
import { CHANGE, INSTANCE, TABLES, type Table } from './tables.ts';

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
 * anything else; it is not written then.
 */
export async function copyAll(source: Side, target: Target, watch: CopyWatch): Promise<Copied> {
  const ours = await source.installation();
  await proveKin(ours, target);
  const pages = await comparePages(source, target, watch);
  const differing = pages.filter((page) => !isSame(page));
  await proveBehind(differing, { source, target });
  const counts = { added: 0, removed: 0 };
  if (differing.length > 0) {
    const theirs = await target.installation();
    await target.setInstallation({ ...theirs, storeId: unfinishedCopyOf(ours.storeId) });
    const job = { source, target, watch, counts };
    await clear(differing, job);
    await fill(differing, job);
    await target.settle();
  }
  const tables = TABLES.map((table) => comparedOf(table, pages));
  if (tables.every(isSame)) await setInstallation(ours, target);
  const installation = {
    table: INSTANCE.name,
    source: await source.sum(INSTANCE, WHOLE),
    target: await target.sum(INSTANCE, WHOLE),
  };
  return { tables: [...tables, installation], ...counts };
}

const WHOLE: Range = { after: undefined, to: undefined };

async function setInstallation(ours: Installation, target: Target): Promise<void> {
  const theirs = await target.installation();
  const isThere = theirs.storeId === ours.storeId && theirs.accessVersion === ours.accessVersion;
  if (!isThere) await target.setInstallation(ours);
}

/** Throws Refusal unless the target is empty or a copy of the same installation. */
async function proveKin(ours: Installation, target: Target): Promise<void> {
  const theirs = await target.installation();
  if (theirs.storeId === unfinishedCopyOf(ours.storeId)) return;
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

/** Throws Refusal where the target has changes that the source has not: they would be lost. */
async function proveBehind(pages: readonly Page[], { source, target }: Sides): Promise<void> {
  for (const { table, range, target: there } of pages) {
    if (table !== CHANGE || there.rows === 0) continue;
    const ours = new Set(await source.rows(table, range));
    const theirs = await target.rows(table, range);
    if (theirs.some((row) => !ours.has(row))) throw wentOn('its change log has entries of its own');
  }
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
  readonly watch: CopyWatch;
  readonly counts: { added: number; removed: number };
}

/** Removes what is in the way, the rows that refer to others first. Of tables that others refer to, what is gone. */
async function clear(pages: readonly Page[], { source, target, watch, counts }: Job): Promise<void> {
  const byTable = Map.groupBy(
    pages.filter((page) => page.target.rows > 0),
    ({ table }) => table,
  );
  for (const table of TABLES.toReversed()) {
    await inParallel(byTable.get(table) ?? [], watch.signal, async ({ range }) => {
      const [ours, theirs] = await Promise.all([source.rows(table, range), target.rows(table, range)]);
      const kept = table.isReferredTo ? new Set(ours.map(keyOf(table))) : new Set(ours);
      const told = table.isReferredTo ? keyOf(table) : (row: string) => row;
      const gone = theirs.filter((row) => !kept.has(told(row)));
      if (gone.length === 0) return;
      await target.remove(table, gone);
      counts.removed += gone.length;
    });
  }
}

/** Adds what is missing, the rows that others refer to first, and reads each page again. */
async function fill(pages: readonly Page[], { source, target, watch, counts }: Job): Promise<void> {
  const tell = watch.onStage(
    'copying',
    pages.reduce((sum, page) => sum + page.source.rows, 0),
  );
  const byTable = Map.groupBy(pages, ({ table }) => table);
  for (const table of TABLES) {
    await inParallel(byTable.get(table) ?? [], watch.signal, async (page) => {
      const ours = await source.rows(table, page.range);
      const theirs = new Set(page.target.rows === 0 ? [] : await target.rows(table, page.range));
      const missing = theirs.size === 0 ? ours : ours.filter((row) => !theirs.has(row));
      if (missing.length > 0) await target.put(table, missing);
      counts.added += missing.length;
      page.target = await target.sum(table, page.range);
      tell(page.source.rows);
    });
  }
}

function keyOf({ key }: Table): (row: string) => string {
  return (row) => {
    const said = JSON.parse(row) as Record<string, unknown>;
    return JSON.stringify(key.map((column) => said[column]));
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
