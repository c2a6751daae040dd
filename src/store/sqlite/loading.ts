import type { Load, LoadOutcome, Verdict, Write } from '../../directory/store.ts';
import type { Change } from '../../domain/change.ts';
import type { Resource } from '../../domain/resource.ts';
import type { Prepared } from './prepared.ts';
import { ID_TAKEN } from './verdicts.ts';
import type { Outcome } from './writer.ts';

interface Loaded {
  readonly outcome: LoadOutcome;
  /** What a replacement leaves behind. */
  readonly change?: Change;
}

type Apply = (write: Write) => Verdict;

/** Makes the work of a bulk load: each record by itself, in one transaction of the writer. */
export function openLoading(of: (resource: Resource) => Prepared, applier: () => Apply) {
  /** Writes one record, unless it is there. Where it is likely to be, looking first spares a failing insert. */
  function loadOne(load: Load, apply: Apply, isLikelyThere: boolean): Loaded {
    const known = isLikelyThere ? compare(load, apply) : undefined;
    if (known) return known;
    const verdict = apply(load.write);
    // An identifier can also be taken by a record under another user: then there is nothing to compare.
    return (verdict === ID_TAKEN ? compare(load, apply) : undefined) ?? { outcome: verdict };
  }

  function compare({ write, judge }: Load, apply: Apply): Loaded | undefined {
    const statements = of(write.resource);
    const row = statements.selectStored.get(...write.key);
    if (!row) return undefined;
    const { judgement, change, record = write.record } = judge(statements.texts.decode(row));
    if (judgement === 'same') return { outcome: { kind: 'same' } };
    if (judgement === 'refuse') return { outcome: { kind: 'differs', members: change.members } };
    const replaced = apply({ ...write, record, op: 'replace' });
    return replaced.kind === 'landed' ? { outcome: { kind: 'replaced' }, change } : { outcome: replaced };
  }

  return (loads: readonly Load[], stopAtFirst: boolean): Outcome<LoadOutcome[]> => {
    const value: LoadOutcome[] = [];
    const changes: Change[] = [];
    const apply = applier();
    let isLikelyThere = false;
    for (const load of loads) {
      const { outcome, change } = loadOne(load, apply, isLikelyThere);
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
