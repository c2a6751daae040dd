import type {
  CommitRefusal,
  CommitResult,
  IdempotencyRecord,
  Insert,
  RemovalWrite,
  Write,
  WriteResult,
} from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { AnyRecord, Resource } from '../../domain/resource.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import type { IdempotencyStore } from '../idempotency/idempotency_store.ts';
import type { Work, WorkResult } from '../transaction_work.ts';
import type { Removals } from './removal.ts';
import { insertAll, isTouch, type PendingWrite, WRITTEN } from './row_write.ts';
import type { Statements } from './statements.ts';
import { checkSealKey, openWriteSteps } from './write_steps.ts';

interface CommitDeps {
  readonly of: (resource: Resource) => Statements;
  readonly removals: Pick<Removals, 'remove'>;
  readonly idempotency: IdempotencyStore;
}

const TOO_MANY: CommitRefusal = Object.freeze({ kind: 'too_many' });
const ALREADY_ANSWERED: CommitResult = Object.freeze({ kind: 'already_answered' });

/** Applies the writes of a bulk load in one transaction. */
export interface Applier {
  apply(write: Write): Work<WriteResult>;
  /** Applies inserts in their order. Returns how many were applied; those after them have to be tried one by one. */
  applyAll(inserts: readonly Insert[]): Work<number>;
}

/** The work of commits and of bulk loads. */
export function openCommits({ of, removals, idempotency }: CommitDeps) {
  const { runWrite, runLoad } = openWriteSteps(of);

  function* write(each: Write, done: CommittedWrites): Work<CommitRefusal | undefined> {
    const pending: PendingWrite = { write: each };
    return (yield* runWrite(pending)) ?? addWritten(pending, done);
  }

  /** Several removals share the limit of one. */
  function* remove(removal: RemovalWrite, done: CommittedWrites): Work<CommitRefusal | undefined> {
    const { value, entries = [], rows = 0 } = yield* removals.remove(removal);
    done.rows += rows;
    if (value.kind !== 'removed') return value;
    const isFirst = done.removed === 0;
    done.removed += entries.length;
    done.entries.push(...entries);
    return isFirst || done.removed <= LIMITS.cascadeRecordsMax ? undefined : TOO_MANY;
  }

  function* commit(
    writes: readonly (Write | RemovalWrite)[],
    answer: IdempotencyRecord | undefined,
  ): Work<WorkResult<CommitResult>> {
    // Saved before the writes: a repetition of a request would violate the unique indexes that the first one filled.
    if (answer && !(yield* idempotency.save(answer))) return { value: ALREADY_ANSWERED, keep: false };
    const done: CommittedWrites = { entries: [], patched: [], removed: 0, rows: 0 };
    for (const [index, each] of writes.entries()) {
      const refused = yield* each.op === 'remove' ? remove(each, done) : write(each, done);
      if (refused) return { value: refusedAt(index, refused), keep: false, rows: done.rows };
    }
    const { entries, patched, rows } = done;
    return { value: patched.length === 0 ? WRITTEN : { ...WRITTEN, patched }, keep: true, entries, rows };
  }

  const applier: Applier = {
    *apply(each) {
      return (yield* runLoad({ write: each, isLoad: true })) ?? WRITTEN;
    },
    *applyAll(inserts) {
      for (const insert of inserts) yield* checkSealKey({ write: insert });
      return yield* insertAll(inserts, of);
    },
  };

  return { applier, commit };
}

/** What the writes of a commit have left so far. */
interface CommittedWrites {
  readonly entries: ChangeEntry[];
  readonly patched: AnyRecord[];
  /** Log entries of removals. */
  removed: number;
  /** Rows of removals besides those of their entries. */
  rows: number;
}

/** Adds the record and the log entry of a write. That of a touch holds the change alone. */
function addWritten(
  { write, before, after }: PendingWrite,
  { entries, patched }: CommittedWrites,
): undefined {
  if (write.op === 'patch' && !isTouch(write) && after) patched.push(after);
  const { change, resource } = write;
  if (!change) return;
  const members = write.op === 'patch' ? { members: Object.keys(write.patch.members) } : {};
  entries.push(isTouch(write) ? { change } : entryOf(change, resource, { before, after, ...members }));
}

function refusedAt(index: number, refusal: CommitRefusal): CommitResult {
  return index === 0 ? refusal : { ...refusal, index };
}
