import { keyColumns, membersOf, type Resource, referencedResource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Guard, Insert, PatchWrite } from '../../model/store.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { parametersOf } from '../../sql/tables/records.ts';
import { firstUnexpected, type SqlValue, type Work } from '../../sql/transaction_work.ts';
import type { Statements } from './statements.ts';

/** A guard that is checked before its write. */
type GuardBefore = Extract<Guard, { readonly kind: 'unreferenced' | 'unchanged' }>;
const isBefore = (guard: Guard): guard is GuardBefore =>
  guard.kind === 'unreferenced' || guard.kind === 'unchanged';

/** Checks the guards of writes. */
export function openGuards(of: (resource: Resource) => Statements, dialect: Dialect) {
  const whereKey = (resource: Resource) => {
    const parameter = parametersOf(resource, dialect);
    return keyColumns(resource)
      .map((column) => `t.${column} = ${parameter(column)}`)
      .join(' and ');
  };

  /** Texts by resource and guard. Each selects a row where the guard does not hold. Parameters: the key of the record, then values. */
  const texts = new Map<string, string>();

  const textOf = (resource: Resource, guard: Guard): string =>
    texts.getOrInsertComputed(`${resource.name} ${JSON.stringify(guard)}`, () =>
      isBefore(guard) ? textBefore(resource, guard) : textAfter(resource, guard),
    );

  function textBefore(resource: Resource, { kind, member }: GuardBefore): string {
    const { name } = of(resource).columnOf(member);
    const conditions = kind === 'unchanged' ? ['true'] : differingReferrers(resource, member);
    return `select 1 from ${resource.table} t where ${whereKey(resource)}
      and t.${name} is distinct from ? and (${conditions.join(' or ')})`;
  }

  function textAfter(resource: Resource, guard: Exclude<Guard, GuardBefore>): string {
    const name = guard.kind === 'unless' ? guard.condition.reference : guard.reference;
    const target = referencedResource(resource, name, RESOURCES);
    const joined = `select 1 from ${resource.table} t
      join ${target.table} r on r.realm_id = t.realm_id and r.id = t.${of(resource).columnOf(name).name}
      where ${whereKey(resource)}`;
    if (guard.kind === 'unless')
      return `${joined} and r.${of(target).columnOf(guard.condition.member).name} = ?`;
    const own = of(resource).columnOf(guard.member).name;
    return `${joined} and r.${of(target).columnOf(guard.of).name} is distinct from t.${own}`;
  }

  /** The new value of the member, for its column and for each of the referrers. */
  function valuesBefore({ resource, patch }: PatchWrite, { kind, member }: GuardBefore): readonly SqlValue[] {
    const value = of(resource).columnOf(member).encode(patch.members[member]);
    return kind === 'unchanged' ? [value] : [value, ...differingReferrers(resource, member).map(() => value)];
  }

  return {
    /** The first guard that the record violates before the write, by itself or because of records that refer to it. */
    *violatedBefore(write: PatchWrite, guards: readonly Guard[]): Work<Guard | undefined> {
      for (const guard of guards) {
        if (!isBefore(guard) || !(guard.member in write.patch.members)) continue;
        const values = valuesBefore(write, guard);
        if (yield* firstUnexpected(textOf(write.resource, guard), ...write.key, ...values)) return guard;
      }
      return undefined;
    },
    /** The first guard that the written record violates, because of a record that it refers to. */
    *violatedAfter(
      { resource, key }: Insert | PatchWrite,
      guards: readonly Guard[],
    ): Work<Guard | undefined> {
      for (const guard of guards) {
        if (isBefore(guard)) continue;
        const values = guard.kind === 'unless' ? [guard.condition.equals] : [];
        if (yield* firstUnexpected(textOf(resource, guard), ...key, ...values)) return guard;
      }
      return undefined;
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
