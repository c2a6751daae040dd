import { entryOf } from '../../log/store/entry.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ChangeEntry } from '../../model/log/change.ts';
import {
  type AnyRecord,
  type Key,
  membersOf,
  type Resource,
  referencedResource,
} from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Guard, Insert, Load, LoadOutcome, Replacement, WriteResult } from '../../model/store.ts';
import { first, tryExecute, type Work, type WorkResult } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { EndSignIns } from './ended_sign_ins.ts';
import { ID_TAKEN, insertAll, storeRecord, violationRefusal, WRITTEN } from './row_write.ts';
import type { Statements } from './statements.ts';

interface Loaded {
  readonly outcome: LoadOutcome;
  /** The log entries of an insert or a replacement. */
  readonly entries?: readonly ChangeEntry[];
}

/** Opens bulk loads: each record independently, in one transaction. */
export function openLoading(
  of: (resource: Resource) => Statements,
  { write }: Pick<Transactions, 'write'>,
  endSignIns: EndSignIns,
) {
  /** A load begins as the last one that was committed ended, because both are parts of one import. */
  let last = {
    batchSize: LIMITS.insertsPerBatchMax as number,
    isLikelyStored: false,
    isSuccessExpected: true,
  };

  /** Writes one record. */
  function* apply(write: Insert | Replacement): Work<WriteResult> {
    try {
      return (yield* storeRecord(write, of, tryExecute)) ?? WRITTEN;
    } catch (error) {
      return yield* violationRefusal(error, write, of);
    }
  }

  /** Writes one record, unless it exists. If it probably exists, reading it first avoids a failing insert. */
  function* loadOne(load: Load, { isLikelyStored, targets }: LoadProgress): Work<Loaded> {
    const guard = yield* violated(load.write, targets, getStored);
    const known = isLikelyStored || guard ? yield* compare(load, guard) : undefined;
    if (known) return known;
    if (guard) return { outcome: { kind: 'guard', guard } };
    const result = yield* apply(load.write);
    if (result.kind === 'written') return inserted(load);
    // The ID can also belong to a record below another user: then there is nothing to compare.
    const existing = result === ID_TAKEN ? yield* compare(load) : undefined;
    return existing ?? { outcome: result };
  }

  function* getStored(resource: Resource, key: Key): Work<AnyRecord | undefined> {
    const { selectStored, decode } = of(resource);
    const row = yield* first(selectStored, ...key);
    return row && decode(row);
  }

  function* compare({ write, compare: compareWith }: Load, guard?: Guard): Work<Loaded | undefined> {
    const stored = yield* getStored(write.resource, write.key);
    if (!stored) return undefined;
    const { comparison, change, record = write.record } = compareWith(stored);
    if (comparison === 'same') return { outcome: { kind: 'same' } };
    if (comparison === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    if (guard && change.members.includes(guard.member)) return { outcome: { kind: 'guard', guard } };
    const replaced = yield* apply({ ...write, record, op: 'replace' });
    if (replaced.kind !== 'written') return { outcome: replaced };
    const versions = { before: stored, after: record, members: change.members };
    const ended = yield* endSignIns(write, stored, record);
    return { outcome: { kind: 'replaced' }, entries: [entryOf(change, write.resource, versions), ...ended] };
  }

  /** The next loads that can be inserted together, or one. A target is stored before the records that refer to it are checked. */
  function* nextLoads(loads: readonly Load[], progress: LoadProgress): Work<readonly Load[]> {
    const next = loads.slice(progress.at, progress.at + nextCount(progress));
    for (const [count, { write }] of next.entries())
      if (TARGETS.has(write.resource) || (yield* violated(write, progress.targets, getStored)))
        return next.slice(0, Math.max(1, count));
    return next;
  }

  /** The outcomes of the next loads: of several inserted together, or of one; none if one of several was refused. */
  function* loadNext(loads: readonly Load[], progress: LoadProgress): Work<readonly Loaded[]> {
    const next = yield* nextLoads(loads, progress);
    const loaded: Loaded[] = [];
    if (next.length > 1) {
      const inserts = next.map(({ write }) => write);
      const count = yield* insertAll(inserts, of, progress.isSuccessExpected);
      loaded.push(...next.slice(0, count).map(inserted));
    } else {
      for (const load of next) loaded.push(yield* loadOne(load, progress));
      if (next[0] && TARGETS.has(next[0].write.resource)) progress.targets.clear();
    }
    noteOutcomes(progress, next.length, loaded);
    return loaded;
  }

  function* loadAll(loads: readonly Load[], stopAtFirst: boolean): Work<WorkResult<LoadProgress>> {
    const outcomes: LoadOutcome[] = [];
    const entries: ChangeEntry[] = [];
    const progress = { ...last, at: 0, refusedUpTo: 0, outcomes, targets: new Map() };
    while (progress.at < loads.length) {
      for (const { outcome, entries: left = [] } of yield* loadNext(loads, progress)) {
        outcomes.push(outcome);
        entries.push(...left);
      }
      if (stopAtFirst && isRefusal(outcomes.at(-1))) break;
    }
    return { value: progress, keep: true, entries: atOneTime(entries) };
  }

  return {
    getStored,
    async load(loads: readonly Load[], stopAtFirst: boolean): Promise<readonly LoadOutcome[]> {
      const realms = new Set(loads.map((each) => each.write.key[0]));
      const { batchSize, isLikelyStored, outcomes } = await write([...realms], () =>
        loadAll(loads, stopAtFirst),
      );
      last = {
        batchSize,
        isLikelyStored,
        isSuccessExpected: outcomes.every(({ kind }) => kind === 'written'),
      };
      return outcomes;
    },
  };
}

/** The entries of one load have one time, so that the log stores it once for several. */
function atOneTime(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
  const at = entries[0]?.change.at;
  return at === undefined ? [] : entries.map((entry) => ({ ...entry, change: { ...entry.change, at } }));
}

/** The progress of a load. */
interface LoadProgress {
  readonly outcomes: readonly LoadOutcome[];
  at: number;
  /** Records to insert together: one after a refused record, and then twice as many each time. */
  batchSize: number;
  /** One of the records up to here was refused in a batch: until it is found, each batch has half of them. */
  refusedUpTo: number;
  isLikelyStored: boolean;
  /** The load before inserted each of its records. */
  readonly isSuccessExpected: boolean;
  /** The records to which guards refer, as they are stored now. */
  readonly targets: Map<string, AnyRecord | undefined>;
}

/** The guard of a record that does not hold, by the records to which guards refer. */
function* violated(
  { resource, key, record, guards = [] }: Insert,
  targets: LoadProgress['targets'],
  getStored: (resource: Resource, key: Key) => Work<AnyRecord | undefined>,
): Work<Guard | undefined> {
  for (const guard of guards) {
    if (guard.kind !== 'unless') continue;
    const { reference, member, equals } = guard.condition;
    const referenced: Key = [key[0], record[reference] as Uuid];
    const name = `${reference} ${referenced.join(' ')}`;
    if (!targets.has(name))
      targets.set(name, yield* getStored(referencedResource(resource, reference, RESOURCES), referenced));
    const target = targets.get(name);
    if (target?.[member] === equals && record.updated_at >= target.updated_at) return guard;
  }
  return undefined;
}

/** The resources to which guards refer. */
const TARGETS: ReadonlySet<Resource> = new Set(
  RESOURCES.flatMap((resource) =>
    membersOf(resource).flatMap(({ annotation: { emailIf } }) =>
      emailIf ? [referencedResource(resource, emailIf.reference, RESOURCES)] : [],
    ),
  ),
);

function nextCount({ at, batchSize, refusedUpTo, isLikelyStored }: LoadProgress): number {
  if (isLikelyStored) return 1;
  return at < refusedUpTo ? Math.ceil((refusedUpTo - at) / 2) : batchSize;
}

/** Notes the outcomes of the records that were tried. */
function noteOutcomes(progress: LoadProgress, tried: number, loaded: readonly Loaded[]): void {
  const { at, batchSize, refusedUpTo } = progress;
  const count = loaded.filter(({ outcome }) => outcome.kind === 'written').length;
  if (count < tried) {
    // SQLite keeps the records before the refused one; PostgreSQL keeps none, and does not report which one it is.
    progress.refusedUpTo = at + (count > 0 ? count + 1 : tried);
    progress.batchSize = 1;
  } else if (at >= refusedUpTo) {
    progress.batchSize = Math.min(2 * batchSize, LIMITS.insertsPerBatchMax);
  }
  progress.at += loaded.length;
  // A file that is imported again usually has further records that exist.
  progress.isLikelyStored = loaded.at(-1)?.outcome.kind === 'same';
}

function inserted({ write: { change, resource, record } }: Load): Loaded {
  return { outcome: WRITTEN, entries: [entryOf(change, resource, { after: record })] };
}

/** Whether an outcome ends a load. */
function isRefusal(outcome: LoadOutcome | undefined): boolean {
  return !['written', 'same', 'replaced', undefined].includes(outcome?.kind);
}
