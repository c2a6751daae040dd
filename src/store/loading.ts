import type { Load, LoadOutcome, Verdict, Write } from '../directory/store.ts';
import type { Change } from '../domain/change.ts';
import type { Resource } from '../domain/resource.ts';
import type { Statements } from './statements.ts';
import { ID_TAKEN } from './verdicts.ts';
import { first, type Outcome, type Work } from './work.ts';

interface Loaded {
  readonly outcome: LoadOutcome;
  /** What a replacement leaves behind. */
  readonly change?: Change;
}

type Apply = (write: Write) => Work<Verdict>;

/** Makes the work of a bulk load: each record by itself, in one transaction. */
export function openLoading(of: (resource: Resource) => Statements, applier: () => Work<Apply>) {
  /** Writes one record, unless it is there. Where it is likely to be, looking first spares a failing insert. */
  function* loadOne(load: Load, apply: Apply, isLikelyThere: boolean): Work<Loaded> {
    const known = isLikelyThere ? yield* compare(load, apply) : undefined;
    if (known) return known;
    const verdict = yield* apply(load.write);
    // An identifier can also be taken by a record under another user: then there is nothing to compare.
    const there = verdict === ID_TAKEN ? yield* compare(load, apply) : undefined;
    return there ?? { outcome: verdict };
  }

  function* compare({ write, judge }: Load, apply: Apply): Work<Loaded | undefined> {
    const texts = of(write.resource);
    const row = yield* first(texts.selectStored, ...write.key);
    if (!row) return undefined;
    const { judgement, change, record = write.record } = judge(texts.decode(row));
    if (judgement === 'same') return { outcome: { kind: 'same' } };
    if (judgement === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    const replaced = yield* apply({ ...write, record, op: 'replace' });
    return replaced.kind === 'landed' ? { outcome: { kind: 'replaced' }, change } : { outcome: replaced };
  }

  return function* (loads: readonly Load[], stopAtFirst: boolean): Work<Outcome<LoadOutcome[]>> {
    const value: LoadOutcome[] = [];
    const changes: Change[] = [];
    const apply = yield* applier();
    let isLikelyThere = false;
    for (const load of loads) {
      const { outcome, change }: Loaded = yield* loadOne(load, apply, isLikelyThere);
      value.push(outcome);
      // A file that is read again goes on as it began.
      isLikelyThere = outcome.kind === 'same';
      if (outcome.kind === 'landed') changes.push(load.change);
      else if (change) changes.push(change);
      else if (stopAtFirst && (outcome.kind === 'taken' || outcome.kind === 'differs')) break;
    }
    return { value, keep: true, changes };
  };
}
