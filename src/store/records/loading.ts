import type { Load, LoadOutcome } from '../../directory/store.ts';
import type { Resource } from '../../domain/resource.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import { first, type Work, type WorkResult } from '../transaction_work.ts';
import type { Applier } from './commit.ts';
import { ID_TAKEN, WRITTEN } from './row_write.ts';
import type { Statements } from './statements.ts';

interface LoadingDeps {
  readonly of: (resource: Resource) => Statements;
  readonly applier: () => Work<Applier>;
  readonly insertsTogether: number;
}

interface Loaded {
  readonly outcome: LoadOutcome;
  /** What an insert or a replacement leaves behind. */
  readonly entry?: ChangeEntry;
}

/** Makes the work of a bulk load: each record by itself, in one transaction. */
export function openLoading({ of, applier, insertsTogether }: LoadingDeps) {
  /** Writes one record, unless it is there. Where it is likely to be, looking first spares a failing insert. */
  function* loadOne(load: Load, by: Applier, isLikelyThere: boolean): Work<Loaded> {
    const known = isLikelyThere ? yield* compare(load, by) : undefined;
    if (known) return known;
    const result = yield* by.apply(load.write);
    // An identifier can also be taken by a record under another user: then there is nothing to compare.
    const there = result === ID_TAKEN ? yield* compare(load, by) : undefined;
    return there ?? { outcome: result };
  }

  function* compare({ write, compare: judge }: Load, { apply }: Applier): Work<Loaded | undefined> {
    const texts = of(write.resource);
    const row = yield* first(texts.selectStored, ...write.key);
    if (!row) return undefined;
    const stored = texts.decode(row);
    const { comparison: judgement, change, record = write.record } = judge(stored);
    if (judgement === 'same') return { outcome: { kind: 'same' } };
    if (judgement === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    const replaced = yield* apply({ ...write, record, op: 'replace' });
    if (replaced.kind !== 'written') return { outcome: replaced };
    const versions = { before: stored, after: record, members: change.members };
    return { outcome: { kind: 'replaced' }, entry: entryOf(change, write.resource, versions) };
  }

  /** The outcomes of the next loads: of several inserted together, or of one. */
  function* takeNext(loads: readonly Load[], course: LoadProgress): Work<readonly Loaded[]> {
    const { at, by } = course;
    if (!course.isLikelyThere && at >= course.tried) {
      const together = loads.slice(at, at + insertsTogether);
      if (yield* insertTogether(together, by)) return together.map(inserted);
      course.tried = at + together.length;
    }
    const load = loads[at] as Load;
    const loaded = yield* loadOne(load, by, course.isLikelyThere);
    // A file that is read again goes on as it began.
    course.isLikelyThere = loaded.outcome.kind === 'same';
    return [loaded.outcome.kind === 'written' ? inserted(load) : loaded];
  }

  return function* (loads: readonly Load[], stopAtFirst: boolean): Work<WorkResult<LoadOutcome[]>> {
    const value: LoadOutcome[] = [];
    const entries: ChangeEntry[] = [];
    const course: LoadProgress = { by: yield* applier(), at: 0, tried: 0, isLikelyThere: false };
    while (course.at < loads.length) {
      for (const { outcome, entry } of yield* takeNext(loads, course)) {
        value.push(outcome);
        if (entry) entries.push(entry);
      }
      course.at = value.length;
      if (stopAtFirst && isRefusal(value.at(-1) as LoadOutcome)) break;
    }
    return { value, keep: true, entries };
  };
}

/** How far a load has come. */
interface LoadProgress {
  readonly by: Applier;
  at: number;
  /** One that is refused among several has all of them looked at one by one, up to here. */
  tried: number;
  isLikelyThere: boolean;
}

function inserted({ write, change }: Load): Loaded {
  return { outcome: WRITTEN, entry: entryOf(change, write.resource, { after: write.record }) };
}

function* insertTogether(loads: readonly Load[], { applyAll }: Applier): Work<boolean> {
  return loads.length > 1 && (yield* applyAll(loads.map(({ write }) => write)));
}

/** Whether a load ends there; what is missing may come later. */
function isRefusal({ kind }: LoadOutcome): boolean {
  return kind === 'unique' || kind === 'differs';
}
