import type { IdempotencyRecord, Insert, Write, WriteResult } from '../../directory/store.ts';
import type { AnyRecord, Resource } from '../../domain/resource.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import type { IdempotencyStore } from '../idempotency/idempotency_store.ts';
import type { SealGuard } from '../idempotency/seal_guard.ts';
import { first, type Work, type WorkResult } from '../work.ts';
import type { Guards } from './guards.ts';
import type { Purges } from './purges.ts';
import type { Statements } from './statements.ts';
import { insertAll, type PendingWrite, WRITTEN, writeRow } from './verdicts.ts';

interface CommitDeps {
  readonly of: (resource: Resource) => Statements;
  readonly purges: Purges;
  readonly guards: Guards;
  readonly memories: IdempotencyStore;
  readonly sealGuard: SealGuard;
}

const ALREADY_ANSWERED: WriteResult = Object.freeze({ kind: 'already_answered' });

/** Answers why a write cannot land, or undefined and what it adds to the write. */
type Step = (writing: PendingWrite) => Work<WriteResult | undefined>;

/** What applies the writes of a bulk load in one transaction. */
export interface Applier {
  apply(write: Write): Work<WriteResult>;
  /** Applies inserts in their order, all or none of them. Answers false where they must be looked at one by one. */
  applyAll(inserts: readonly Insert[]): Work<boolean>;
}

/** The work of commits and of bulk loads. */
export function openCommits({ of, purges, guards, memories, sealGuard }: CommitDeps) {
  const { checkSealKey } = sealGuard;
  const { checkNotPurged } = purges;
  const storeRow: Step = (writing) => writeRow(writing, of);

  /** What a write passes in its transaction, in this order; the first step that answers a verdict ends the commit. */
  const steps: readonly Step[] = [
    readBefore,
    guards.compareWithBefore,
    checkSealKey,
    checkNotPurged,
    storeRow,
    guards.check,
  ];
  /** A bulk load compares records itself, and looks at no guards. */
  const loadSteps: readonly Step[] = [checkSealKey, checkNotPurged, storeRow];

  /** Adds the record as it is before the write, unless the write makes it or only touches it. */
  function* readBefore(writing: PendingWrite): Work<undefined> {
    const { write } = writing;
    if (write.op === 'insert' || isTouch(write)) return;
    const texts = of(write.resource);
    const row = yield* first(texts.select, ...write.key);
    if (row) writing.before = texts.decode(row);
  }

  /** Answers false where the answer to the same request is kept already. */
  function* saveRecord(memory: IdempotencyRecord): Work<boolean> {
    yield* sealGuard.checkRecord(memory);
    return yield* memories.save(memory);
  }

  function* commit(
    writes: readonly Write[],
    memory: IdempotencyRecord | undefined,
  ): Work<WorkResult<WriteResult>> {
    // Looked at first: a repetition of the same request would break the rules that the first one kept.
    if (memory && !(yield* saveRecord(memory))) return { value: ALREADY_ANSWERED, keep: false };
    const isPurging = yield* purges.areUnderWay();
    const landed: PendingWrite[] = [];
    for (const write of writes) {
      const writing: PendingWrite = { write, isPurging };
      const refused = yield* runSteps(steps, writing);
      if (refused) return { value: refused, keep: false };
      landed.push(writing);
    }
    return { value: writeResultOf(landed), keep: true, entries: entriesOf(landed) };
  }

  function* applier(): Work<Applier> {
    const isPurging = yield* purges.areUnderWay();
    return {
      *apply(write) {
        return (yield* runSteps(loadSteps, { write, isPurging })) ?? WRITTEN;
      },
      *applyAll(inserts) {
        if (isPurging) return false;
        for (const write of inserts) yield* checkSealKey({ write, isPurging });
        return yield* insertAll(inserts, of);
      },
    };
  }

  return { applier, commit };
}

/** Takes a write through steps, and answers what the first one says that refuses it. */
function* runSteps(steps: readonly Step[], writing: PendingWrite): Work<WriteResult | undefined> {
  for (const step of steps) {
    const refused = yield* step(writing);
    if (refused) return refused;
  }
  return undefined;
}

function isTouch(write: Write): boolean {
  return write.op === 'patch' && Object.keys(write.patch.members).length === 0;
}

function writeResultOf(landed: readonly PendingWrite[]): WriteResult {
  const patched: AnyRecord[] = [];
  for (const { write, after } of landed) if (write.op === 'patch' && after) patched.push(after);
  return patched.length === 0 ? WRITTEN : { kind: 'written', patched };
}

/** What the log reports of writes that landed; of a touch the change alone, because another write caused it. */
function entriesOf(landed: readonly PendingWrite[]): readonly ChangeEntry[] {
  const entries: ChangeEntry[] = [];
  for (const { write, before, after } of landed) {
    const { change, resource } = write;
    if (!change) continue;
    const members = write.op === 'patch' ? { members: Object.keys(write.patch.members) } : {};
    entries.push(isTouch(write) ? { change } : entryOf(change, resource, { before, after, ...members }));
  }
  return entries;
}
