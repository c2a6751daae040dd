import { entryOf } from '../../log/store/entry.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ChangeEntry } from '../../model/log/change.ts';
import type { AnyRecord, Resource } from '../../model/resource.ts';
import { user } from '../../model/resources.ts';
import type {
  CommitRefusal,
  CommitResult,
  IdempotencyRecord,
  Insert,
  PatchWrite,
  RemovalWrite,
  Replacement,
  Write,
  WriteRefusal,
} from '../../model/store.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { first, type Work, type WorkResult } from '../../sql/transaction_work.ts';
import type { EndSignIns } from './ended_sign_ins.ts';
import { openGuards } from './guards.ts';
import type { IdempotencyStore } from './idempotency.ts';
import type { Removals } from './removal.ts';
import {
  NOT_FOUND,
  patchRow,
  REVISION_MISMATCH,
  storeRecord,
  touchRow,
  violationRefusal,
  WRITTEN,
} from './row_write.ts';
import type { Statements } from './statements.ts';

interface CommitDeps {
  readonly of: (resource: Resource) => Statements;
  readonly dialect: Dialect;
  readonly removals: Pick<Removals, 'remove'>;
  readonly idempotency: IdempotencyStore;
  readonly endSignIns: EndSignIns;
}

const TOO_MANY: CommitRefusal = Object.freeze({ kind: 'too_many' });
const ALREADY_ANSWERED: CommitResult = Object.freeze({ kind: 'already_answered' });

/** The work of commits. */
export function openCommits({ of, dialect, removals, idempotency, endSignIns }: CommitDeps) {
  const { violatedBefore, violatedAfter } = openGuards(of, dialect);

  function* insert(write: Insert, done: CommittedWrites): Work<WriteRefusal | undefined> {
    const refusal = yield* storeRecord(write, of);
    if (refusal) return refusal;
    const guard = write.guards && (yield* violatedAfter(write, write.guards));
    if (guard) return { kind: 'guard', guard };
    done.entries.push(entryOf(write.change, write.resource, { after: write.record }));
    return undefined;
  }

  function* replace(write: Replacement, done: CommittedWrites): Work<WriteRefusal | undefined> {
    const { change, resource, record } = write;
    const before = yield* readRecord(write);
    const refusal = yield* storeRecord(write, of);
    if (refusal) return refusal;
    if (change) done.entries.push(entryOf(change, resource, { before, after: record }));
    return undefined;
  }

  /** Its log entry holds the change alone. */
  function* touch(write: PatchWrite, { entries }: CommittedWrites): Work<WriteRefusal | undefined> {
    if (!(yield* touchRow(write, of))) return NOT_FOUND;
    if (write.change) entries.push({ change: write.change });
    return undefined;
  }

  /** A missing record, a unique value that is in use and another revision are reported before a guard. */
  function* patch(write: PatchWrite, done: CommittedWrites): Work<WriteRefusal | undefined> {
    const { change, resource, expectedRevision, guards } = write;
    const before = yield* readRecord(write);
    // The row changes what these guards compare with.
    const violated = guards && (yield* violatedBefore(write, guards));
    const after = yield* patchRow(write, of, before);
    if (!after) return before && expectedRevision !== undefined ? REVISION_MISMATCH : NOT_FOUND;
    const guard = violated ?? (guards && (yield* violatedAfter(write, guards)));
    if (guard) return { kind: 'guard', guard };
    done.patched.push(after);
    if (change)
      done.entries.push(
        entryOf(change, resource, { before, after, members: Object.keys(write.patch.members) }),
      );
    if (resource === user) done.entries.push(...(yield* endSignIns(write, before, after)));
    return undefined;
  }

  /** The record before a write, for the log. */
  function* readRecord({ resource, key }: Write): Work<AnyRecord | undefined> {
    const { select, decode } = of(resource);
    const row = yield* first(select, ...key);
    return row && decode(row);
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

  function* write(each: Write | RemovalWrite, done: CommittedWrites): Work<CommitRefusal | undefined> {
    if (each.op === 'remove') return yield* remove(each, done);
    try {
      if (each.op === 'insert') return yield* insert(each, done);
      if (each.op === 'replace') return yield* replace(each, done);
      return yield* each.isTouch ? touch(each, done) : patch(each, done);
    } catch (error) {
      return yield* violationRefusal(error, each, of);
    }
  }

  function* commit(
    writes: readonly (Write | RemovalWrite)[],
    answer: IdempotencyRecord | undefined,
  ): Work<WorkResult<CommitResult>> {
    // Saved before the writes: a repetition of a request would violate the unique indexes that the first one filled.
    if (answer && !(yield* idempotency.save(answer))) return { value: ALREADY_ANSWERED, keep: false };
    const done: CommittedWrites = { entries: [], patched: [], removed: 0, rows: 0 };
    for (const [index, each] of writes.entries()) {
      const refusal = yield* write(each, done);
      if (refusal) {
        const value = index === 0 ? refusal : { ...refusal, index };
        return { value, keep: false, rows: done.rows };
      }
    }
    const { entries, patched, rows } = done;
    return { value: patched.length === 0 ? WRITTEN : { ...WRITTEN, patched }, keep: true, entries, rows };
  }

  return commit;
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
