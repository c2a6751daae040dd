import type { MaybePromise } from '../../model/store.ts';
import type { Migration } from '../../sql/migrations.ts';
import type { Long } from '../../sql/transaction_work.ts';
import type { Inspection, MigrationState, UnreadableProxy } from '../doctor/inspection.ts';

/** The rows of a query, in one snapshot. */
type QueryRows = <T>(text: string) => MaybePromise<Iterable<T>>;

/** The queries of `doctor` that are the same for all engines. */
export function inspectionQueries(rows: QueryRows, known: readonly Migration[]) {
  return {
    migrations: async () => ({
      applied: [...(await rows<MigrationState['applied'][number]>(APPLIED))],
      known,
    }),
    async unreadableProxies() {
      const found = await rows<UnreadableProxy & { readonly at: Long }>(PROXIES);
      return Array.from(found, ({ address, at }) => ({ address, at: Number(at) }));
    },
  } satisfies Partial<Inspection>;
}

const APPLIED = 'select version, name, program_version as program from migration order by version';

const PROXIES = `
  select address, max(at) as at from act where action = 'proxy.unreadable' group by address order by address`;

/** An object of a schema. */
export interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly definition: string | null;
}

/** Compares the objects of a schema with those that this release creates. */
export function* schemaDifferences(found: readonly SchemaObject[], expected: readonly SchemaObject[]) {
  const left = new Map(found.map((object) => [`${object.type} ${object.name}`, object]));
  for (const { type, name, definition } of expected) {
    const object = left.get(`${type} ${name}`);
    left.delete(`${type} ${name}`);
    if (!object) yield { type, name, is: 'missing' };
    else if (object.definition !== definition) yield { type, name, is: 'not as this program creates it' };
  }
  for (const { type, name } of left.values())
    yield { type, name, is: 'not part of the schema of this program' };
}
