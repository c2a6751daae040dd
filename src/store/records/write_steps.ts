import type { Guard, Write, WriteRefusal } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { keyColumns, membersOf, type Resource, referencedResource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import { ANY_CHECK, IS_KEY_KNOWN } from '../auth/access.ts';
import { first, firstUnexpected, type SqlValue, type Work } from '../transaction_work.ts';
import { isTouch, type PendingWrite, writeRow, writtenValue } from './row_write.ts';
import type { Statements } from './statements.ts';

type Of = (resource: Resource) => Statements;

/** One step of a write. Returns the refusal of the write; after undefined the next step runs. */
type Step = (pending: PendingWrite) => Work<WriteRefusal | undefined>;

/** The steps of writes, each run as one. */
export interface WriteSteps {
  readonly runWrite: Step;
  /** A bulk load compares records itself, and checks no guards. */
  readonly runLoad: Step;
}

/** A query that returns a row where a guard does not hold. Parameters: the key of the record, then `values`. */
interface GuardQuery {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** The members of each resource that are stored encrypted. */
const SEALED_MEMBERS = new Map(
  RESOURCES.map((resource) => {
    const sealed = membersOf(resource).filter(({ annotation }) => annotation.secret === 'sealed');
    return [resource, sealed.map(({ name }) => name)] as const;
  }),
);

export function openWriteSteps(of: Of): WriteSteps {
  const guardQueries = guardQueriesOf(of);

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

  function* storeRow(pending: PendingWrite): Work<WriteRefusal | undefined> {
    return yield* writeRow(pending, of);
  }

  /** The last step: a missing record, a unique value that is in use and another revision are reported before a guard. */
  function* checkGuards({ write, violatedGuard }: PendingWrite): Work<WriteRefusal | undefined> {
    const guard = violatedGuard ?? (yield* firstViolated(write, guardQueries.after));
    return guard && { kind: 'guard', guard };
  }

  return {
    runWrite: inOrder([readBefore, compareGuardsWithBefore, checkSealKey, storeRow, checkGuards]),
    runLoad: inOrder([checkSealKey, storeRow]),
  };
}

/** One step of several; the first one that refuses a write ends it. */
function inOrder(steps: readonly Step[]): Step {
  return function* (pending) {
    for (const step of steps) {
      const refused = yield* step(pending);
      if (refused) return refused;
    }
    return undefined;
  };
}

export function* checkSealKey({ write }: Pick<PendingWrite, 'write'>): Work<undefined> {
  for (const name of SEALED_MEMBERS.get(write.resource) ?? []) {
    yield* assertKeyIsKnown(writtenValue(write, name));
  }
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
function guardQueriesOf(of: Of): {
  readonly before: GuardQueryOf;
  readonly after: GuardQueryOf;
} {
  const columnOf = (resource: Resource, member: string) => of(resource).columnOf(member).name;
  return {
    before(write, guard) {
      if (guard.kind !== 'unreferenced' || write.op !== 'patch') return undefined;
      if (!(guard.member in write.patch.members)) return undefined;
      const { name, encode } = of(write.resource).columnOf(guard.member);
      const value = encode(write.patch.members[guard.member]);
      const differing = differingReferrers(write.resource, guard.member);
      const text = `select 1 from ${write.resource.table} t where ${whereKey(write.resource)}
      and t.${name} is distinct from ? and (${differing.join(' or ')})`;
      return { text, values: [value, ...differing.map(() => value)] };
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

/** SQL for whether records that refer to the row `t`, and should have its value of a member, have another one. */
function differingReferrers(resource: Resource, member: string): readonly string[] {
  return RESOURCES.flatMap((other) =>
    membersOf(other).flatMap(({ name, annotation: { sameAs } }) =>
      sameAs?.member === member && referencedResource(other, sameAs.reference, RESOURCES) === resource
        ? [
            `exists (select 1 from ${other.table} r where r.realm_id = t.realm_id
            and r.${sameAs.reference} = t.id and r.${name} is distinct from ?)`,
          ]
        : [],
    ),
  );
}

function whereKey(resource: Resource): string {
  return keyColumns(resource)
    .map((column) => `t.${column} = ?`)
    .join(' and ');
}
