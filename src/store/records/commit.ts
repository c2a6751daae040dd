import type { Guard, IdempotencyRecord, Insert, Write, WriteResult } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { type AnyRecord, keyColumns, type Resource, referencedResource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import { type ChangeEntry, entryOf } from '../audit/entry.ts';
import { ANY_CHECK, IS_KEY_KNOWN } from '../auth/access.ts';
import type { IdempotencyStore } from '../idempotency/idempotency_store.ts';
import { sealedMembers } from '../idempotency/sealed_columns.ts';
import { first, firstUnexpected, type SqlValue, type Work, type WorkResult } from '../transaction_work.ts';
import { isReferredTo } from './cascade.ts';
import type { Purges } from './purges.ts';
import { insertAll, isTouch, type PendingWrite, WRITTEN, writeRow, writtenValue } from './row_write.ts';
import type { Statements } from './statements.ts';

interface CommitDeps {
  readonly of: (resource: Resource) => Statements;
  readonly purges: Purges;
  readonly idempotency: IdempotencyStore;
}

const ALREADY_ANSWERED: WriteResult = Object.freeze({ kind: 'already_answered' });

/** One step of a write. Returns the result that rejects the write; after undefined the next step runs. */
type Step = (pending: PendingWrite) => Work<WriteResult | undefined>;

/** Applies the writes of a bulk load in one transaction. */
export interface Applier {
  apply(write: Write): Work<WriteResult>;
  /** Applies inserts in their order, all or none of them. Returns false where each has to be tried by itself. */
  applyAll(inserts: readonly Insert[]): Work<boolean>;
}

/** A query that returns a row where a guard does not hold. Parameters: the key of the record, then `values`. */
interface GuardQuery {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** The members of each resource that are stored encrypted. */
const SEALED_MEMBERS = new Map(RESOURCES.map((resource) => [resource, sealedMembers(resource)]));

/** The work of commits and of bulk loads. */
export function openCommits({ of, purges, idempotency }: CommitDeps) {
  const guardQueries = guardQueriesOf(of);
  /** The steps of a write in its transaction, in order; the first one that returns a result ends the commit. */
  const steps: readonly Step[] = [
    readBefore,
    compareGuardsWithBefore,
    checkSealKey,
    purges.checkNotPurged,
    storeRow,
    checkGuards,
  ];
  /** A bulk load compares records itself, and checks no guards. */
  const loadSteps: readonly Step[] = [checkSealKey, purges.checkNotPurged, storeRow];

  /** Reads the record before the write, for the audit log. An insert has none, and a touch logs none. */
  function* readBefore(pending: PendingWrite): Work<undefined> {
    const { write } = pending;
    if (write.op === 'insert' || isTouch(write)) return;
    const texts = of(write.resource);
    const row = yield* first(texts.select, ...write.key);
    if (row) pending.before = texts.decode(row);
  }

  /** Remembers a guard that the stored record violates: the row below changes what it compares with. */
  function* compareGuardsWithBefore(pending: PendingWrite): Work<undefined> {
    pending.violatedGuard = yield* firstViolated(pending.write, guardQueries.before);
  }

  function* checkSealKey({ write }: PendingWrite): Work<undefined> {
    for (const name of SEALED_MEMBERS.get(write.resource) ?? []) {
      yield* assertKeyIsKnown(writtenValue(write, name));
    }
  }

  function* storeRow(pending: PendingWrite): Work<WriteResult | undefined> {
    return yield* writeRow(pending, of);
  }

  /** The last step: a missing record, a unique value that is in use and another revision are reported before a guard. */
  function* checkGuards({ write, violatedGuard }: PendingWrite): Work<WriteResult | undefined> {
    const guard = violatedGuard ?? (yield* firstViolated(write, guardQueries.after));
    return guard && { kind: 'guard', guard };
  }

  /**
   * Rejects a secret that was sealed by a key without a key check: a process that missed the end of a master key change
   * would store a secret that cannot be decrypted. That end waits for the clocks of all realms, and this write holds one.
   */
  function* assertKeyIsKnown(sealed: unknown): Work<void> {
    if (!(sealed instanceof Uint8Array) || (yield* first(IS_KEY_KNOWN, ciphertextKeyId(sealed)))) return;
    // A database without any key check has never had a master key.
    if (yield* first(ANY_CHECK)) {
      throw new Fault('unavailable', [], new Error('the master key was changed while this process ran'));
    }
  }

  function* commit(
    writes: readonly Write[],
    answer: IdempotencyRecord | undefined,
  ): Work<WorkResult<WriteResult>> {
    if (answer) {
      yield* assertKeyIsKnown(answer.sealed);
      // Saved before the writes: a repetition of a request would violate the unique indexes that the first one filled.
      if (!(yield* idempotency.save(answer))) return { value: ALREADY_ANSWERED, keep: false };
    }
    const arePurging = new Map<Uuid, boolean>();
    const written: PendingWrite[] = [];
    for (const write of writes) {
      const pending: PendingWrite = { write, isPurging: yield* isPurgingIn(write.key[0], arePurging) };
      const refused = yield* runSteps(steps, pending);
      if (refused) return { value: refused, keep: false };
      written.push(pending);
    }
    return { value: writeResultOf(written), keep: true, entries: entriesOf(written) };
  }

  /** Whether a record of the realm is being purged, asked once for each realm. */
  function* isPurgingIn(realm: Uuid, known: Map<Uuid, boolean>): Work<boolean> {
    const found = known.get(realm) ?? (yield* purges.areRunning(realm));
    known.set(realm, found);
    return found;
  }

  function applier(): Applier {
    const arePurging = new Map<Uuid, boolean>();
    return {
      *apply(write) {
        const isPurging = yield* isPurgingIn(write.key[0], arePurging);
        return (yield* runSteps(loadSteps, { write, isPurging, isLoad: true })) ?? WRITTEN;
      },
      *applyAll(inserts) {
        for (const { key } of inserts) if (yield* isPurgingIn(key[0], arePurging)) return false;
        for (const write of inserts) yield* checkSealKey({ write, isPurging: false });
        return yield* insertAll(inserts, of);
      },
    };
  }

  return { applier, commit };
}

/** Runs a write through steps. Returns the result of the first step that refuses it. */
function* runSteps(steps: readonly Step[], pending: PendingWrite): Work<WriteResult | undefined> {
  for (const step of steps) {
    const refused = yield* step(pending);
    if (refused) return refused;
  }
  return undefined;
}

function writeResultOf(written: readonly PendingWrite[]): WriteResult {
  const patched: AnyRecord[] = [];
  for (const { write, after } of written) {
    if (write.op === 'patch' && !isTouch(write) && after) patched.push(after);
  }
  return patched.length === 0 ? WRITTEN : { kind: 'written', patched };
}

/** The log entries of writes. That of a touch holds the change alone. */
function entriesOf(written: readonly PendingWrite[]): readonly ChangeEntry[] {
  const entries: ChangeEntry[] = [];
  for (const { write, before, after } of written) {
    const { change, resource } = write;
    if (!change) continue;
    const members = write.op === 'patch' ? { members: Object.keys(write.patch.members) } : {};
    entries.push(isTouch(write) ? { change } : entryOf(change, resource, { before, after, ...members }));
  }
  return entries;
}

/** The query of a guard; undefined where the guard is not checked at that step. */
type GuardQueryOf = (write: Write, guard: Guard) => GuardQuery | undefined;

function* firstViolated(write: Write, queryOf: GuardQueryOf): Work<Guard | undefined> {
  if (write.op === 'replace') return undefined;
  for (const guard of write.guards ?? []) {
    const query = queryOf(write, guard);
    if (query && (yield* firstUnexpected(query.text, ...write.key, ...query.values))) return guard;
  }
  return undefined;
}

/** The queries of guards: those that compare with the record before the write, and those that read what it wrote. */
function guardQueriesOf(of: CommitDeps['of']): {
  readonly before: GuardQueryOf;
  readonly after: GuardQueryOf;
} {
  const columnOf = (resource: Resource, member: string) => of(resource).columnOf(member).name;
  return {
    before(write, guard) {
      if (guard.kind !== 'unreferenced' || write.op !== 'patch') return undefined;
      if (!(guard.member in write.patch.members)) return undefined;
      const { name, encode } = of(write.resource).columnOf(guard.member);
      const text = `select 1 from ${write.resource.table} t where ${whereKey(write.resource)}
      and ${isReferredTo(write.resource, RESOURCES)} and t.${name} is distinct from ?`;
      return { text, values: [encode(write.patch.members[guard.member])] };
    },
    after({ resource }, guard) {
      if (guard.kind === 'unreferenced') return undefined;
      const name = guard.kind === 'unless' ? guard.condition.reference : guard.reference;
      const target = referencedResource(resource, name, RESOURCES);
      const joined = `select 1 from ${resource.table} t
      join ${target.table} r on r.realm_id = t.realm_id and r.id = t.${columnOf(resource, name)}
      where ${whereKey(resource)}`;
      if (guard.kind === 'unless') {
        const text = `${joined} and r.${columnOf(target, guard.condition.member)} = ?`;
        return { text, values: [guard.condition.equals] };
      }
      const own = columnOf(resource, guard.member);
      return { text: `${joined} and r.${columnOf(target, guard.of)} is distinct from t.${own}`, values: [] };
    },
  };
}

function whereKey(resource: Resource): string {
  return keyColumns(resource)
    .map((column) => `t.${column} = ?`)
    .join(' and ');
}
