import type { CopyWatch } from './copy.ts';
import { inParallel } from './parallel.ts';
import type { Key, Range, Side, Sum, Target } from './side.ts';
import { TABLES, type Table } from './tables.ts';

/** A part of a table, and what both sides hold of it. */
export interface Page {
  readonly table: Table;
  readonly range: Range;
  readonly source: Sum;
  /** Read again whenever the page was written. */
  target: Sum;
}

const NOTHING: Sum = { rows: 0, digest: new Bun.CryptoHasher('sha256').update('').digest('hex') };

export function isSame({ source, target }: { readonly source: Sum; readonly target: Sum }): boolean {
  return source.rows === target.rows && source.digest === target.digest;
}

/** Every page of every table, in the order of the tables and of the keys. */
export async function comparePages(
  source: Side,
  target: Target,
  { signal, onStage }: CopyWatch,
): Promise<readonly Page[]> {
  const counts = new Map<Table, number>();
  for (const table of TABLES) counts.set(table, await source.count(table));
  const tell = onStage(
    'comparing',
    [...counts.values()].reduce((sum, count) => sum + count, 0),
  );
  const pages: Page[] = [];
  for (const table of TABLES) {
    const isEmpty = (await target.count(table)) === 0;
    const own: Page[] = [];
    await inParallel(numbered(rangesOf(table, source)), signal, async ([at, range]) => {
      const [ours, theirs] = await Promise.all([
        source.sum(table, range),
        isEmpty ? NOTHING : target.sum(table, range),
      ]);
      own[at] = { table, range, source: ours, target: theirs };
      tell(ours.rows);
    });
    pages.push(...own);
  }
  return pages;
}

/** Ranges that leave out no key there may be. */
async function* rangesOf(table: Table, source: Side): AsyncGenerator<Range> {
  let after: Key | undefined;
  for (;;) {
    const to = await source.pageEnd(table, after);
    yield { after, to };
    if (to === undefined) return;
    after = to;
  }
}

async function* numbered<T>(items: AsyncIterable<T>): AsyncGenerator<readonly [number, T]> {
  let at = 0;
  for await (const item of items) {
    yield [at, item];
    at += 1;
  }
}
