import type { MaybePromise } from '../../model/store.ts';
import type { Migration } from '../../sql/migrations.ts';
import type { Long } from '../../sql/transaction_work.ts';
import type { Inspection, MigrationState, RealmSignIn, UnreadableProxy } from '../doctor/inspection.ts';

/** The rows of a query, in one snapshot. */
type QueryRows = <T>(text: string) => MaybePromise<Iterable<T>>;

/** The queries of `doctor` that are the same for all engines. `key`: the column of realms to which records refer. */
export function inspectionQueries(rows: QueryRows, known: readonly Migration[], key: 'slot' | 'realm_id') {
  return {
    migrations: async () => ({
      applied: [...(await rows<MigrationState['applied'][number]>(APPLIED))],
      known,
    }),
    async unreadableProxies() {
      const found = await rows<UnreadableProxy & { readonly at: Long }>(PROXIES);
      return Array.from(found, ({ address, at }) => ({ address, at: Number(at) }));
    },
    realmSignIns: (since) => rows<RealmSignIn>(signInsSince(since, key)),
  } satisfies Partial<Inspection>;
}

const APPLIED = 'select version, name, program_version as program from migration order by version';

const PROXIES = `
  select address, max(at) as at from act where action = 'proxy.unreadable' group by address order by address`;

/** The users of a realm have an index in the order of their creation. */
const signInsSince = (since: number, key: string) => `
  select * from (
    select realm_id as realm, duplicate_email_policy as policy, redirect_uris,
      (select cast(count(distinct issuer) as integer) from oidc_profile p where p.realm_id = r.${key}) as issuers,
      case when account_settings like '%"enable_self_signup":true%' then (
        select cast(count(*) as integer) from user_info u
        where u.realm_id = r.${key} and u.created_at > ${since} and email_vouched = 0 and exists (
          select 1 from password_profile_info i where i.realm_id = u.realm_id and i.user_id = u.id)
      ) end as signups
    from realm r
  ) as found where issuers > 0 and redirect_uris <> '[]' or issuers > 1 and policy = 'api_only' or signups is not null`;

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
