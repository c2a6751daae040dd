import type { Load, LoadOutcome } from '../../directory/store.ts';
import type { AnyRecord, Key, Resource } from '../../domain/resource.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import { first, type Work, type WorkResult } from '../transaction_work.ts';
import type { Applier } from './commit.ts';
import { ID_TAKEN, WRITTEN } from './row_write.ts';
import type { Statements } from './statements.ts';

interface LoadingDeps {
  readonly of: (resource: Resource) => Statements;
  readonly applier: Applier;
  readonly insertsPerBatch: number;
}

interface Loaded {
  readonly outcome: LoadOutcome;
  /** The log entry of an insert or a replacement. */
  readonly entry?: ChangeEntry;
}

/** Creates the work of a bulk load: each record independently, in one transaction. */
export function openLoading({ of, applier, insertsPerBatch }: LoadingDeps) {
  /** Writes one record, unless it exists. If it probably exists, reading it first avoids a failing insert. */
  function* loadOne(load: Load, isLikelyStored: boolean): Work<Loaded> {
    const known = isLikelyStored ? yield* compare(load) : undefined;
    if (known) return known;
    const result = yield* applier.apply(load.write);
    // The ID can also belong to a record below another user: then there is nothing to compare.
    const existing = result === ID_TAKEN ? yield* compare(load) : undefined;
    return existing ?? { outcome: result };
  }

  function* getStored(resource: Resource, key: Key): Work<AnyRecord | undefined> {
    const { selectStored, decode } = of(resource);
    const row = yield* first(selectStored, ...key);
    return row && decode(row);
  }

  function* compare({ write, compare: compareWith }: Load): Work<Loaded | undefined> {
    const stored = yield* getStored(write.resource, write.key);
    if (!stored) return undefined;
    const { comparison, change, record = write.record } = compareWith(stored);
    if (comparison === 'same') return { outcome: { kind: 'same' } };
    if (comparison === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    const replaced = yield* applier.apply({ ...write, record, op: 'replace' });
    if (replaced.kind !== 'written') return { outcome: replaced };
    const versions = { before: stored, after: record, members: change.members };
    return { outcome: { kind: 'replaced' }, entry: entryOf(change, write.resource, versions) };
  }

  /** The outcomes of the next loads: several inserted together, or one. */
  function* loadNext(loads: readonly Load[], progress: LoadProgress): Work<readonly Loaded[]> {
    const { at } = progress;
    if (!progress.isLikelyStored && at >= progress.tried) {
      const together = loads.slice(at, at + insertsPerBatch);
      const count = yield* insertTogether(together, applier);
      // The refused record is loaded alone; if the engine kept none of the others, so are they.
      if (count < together.length) progress.tried = count > 0 ? at + count + 1 : at + together.length;
      if (count > 0) return together.slice(0, count).map(inserted);
    }
    const load = loads[at] as Load;
    const loaded = yield* loadOne(load, progress.isLikelyStored);
    // A file that is imported again usually has further records that exist.
    progress.isLikelyStored = loaded.outcome.kind === 'same';
    return [loaded.outcome.kind === 'written' ? inserted(load) : loaded];
  }

  function* load(loads: readonly Load[], stopAtFirst: boolean): Work<WorkResult<LoadOutcome[]>> {
    const value: LoadOutcome[] = [];
    const entries: ChangeEntry[] = [];
    const progress: LoadProgress = { at: 0, tried: 0, isLikelyStored: false };
    while (progress.at < loads.length) {
      for (const { outcome, entry } of yield* loadNext(loads, progress)) {
        value.push(outcome);
        if (entry) entries.push(entry);
      }
      progress.at = value.length;
      if (stopAtFirst && isRefusal(value.at(-1) as LoadOutcome)) break;
    }
    return { value, keep: true, entries: atOneTime(entries) };
  }

  return { getStored, load };
}

/** The entries of one load have one time, so that the log stores it once for several. */
function atOneTime(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
  const at = entries[0]?.change.at;
  return at === undefined ? [] : entries.map((entry) => ({ ...entry, change: { ...entry.change, at } }));
}

/** The progress of a load. */
interface LoadProgress {
  at: number;
  /** After a failed insert of several, records up to here are loaded one by one. */
  tried: number;
  isLikelyStored: boolean;
}

function inserted({ write: { change, resource, record } }: Load): Loaded {
  return { outcome: WRITTEN, entry: entryOf(change, resource, { after: record }) };
}

function* insertTogether(loads: readonly Load[], { applyAll }: Applier): Work<number> {
  return loads.length > 1 ? yield* applyAll(loads.map(({ write }) => write)) : 0;
}

/** Whether an outcome ends a load; missing records may come later. */
function isRefusal({ kind }: LoadOutcome): boolean {
  return kind === 'unique' || kind === 'differs';
}
