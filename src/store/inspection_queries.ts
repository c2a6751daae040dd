import type {
  HashKindUse,
  Inspection,
  IssuerUse,
  MigrationState,
  Rows,
  UnfinishedPurge,
  UnreadableProxy,
} from '../doctor/inspection.ts';
import { oidcProfile, oidcProfileInfo, passwordProfileInfo, RESOURCES, realm } from '../domain/resources.ts';
import { hashKindOf } from './auth/credentials.ts';
import type { Dialect } from './dialect.ts';
import type { Long, SqlValue } from './transaction_work.ts';

/** How an engine runs the queries of `doctor`. */
export interface QueryRunner {
  /** The rows of a query with `?` placeholders, one by one, in one snapshot. */
  readonly rows: <T>(text: string, ...values: readonly SqlValue[]) => Rows<T>;
  readonly position: Dialect['position'];
}

/** The queries of `doctor` that are the same for all engines. */
export type InspectionQueries = Pick<
  Inspection,
  'unfinishedPurges' | 'issuers' | 'foreignLinks' | 'hashKinds' | 'unknownRealms' | 'unreadableProxies'
> & {
  /** The applied migrations, in order. */
  readonly applied: () => Rows<MigrationState['applied'][number]>;
  /** The version of the newest applied migration. */
  readonly schema: () => Promise<number>;
};

export function inspectionQueries(runner: QueryRunner): InspectionQueries {
  const { rows } = runner;
  const applied: InspectionQueries['applied'] = () => rows(APPLIED);
  async function schema(): Promise<number> {
    let newest = 0;
    for await (const { version } of applied()) newest = version;
    return newest;
  }
  return {
    applied,
    schema,
    unfinishedPurges: () => unfinishedPurges(runner),
    async *issuers() {
      for await (const use of rows<IssuerUse & { readonly count: Long }>(ISSUERS)) {
        yield { ...use, count: Number(use.count) };
      }
    },
    foreignLinks: () => rows(FOREIGN_LINKS),
    async *hashKinds() {
      const text = hashKindCounts(runner);
      for await (const use of rows<HashKindUse & { readonly count: Long }>(text)) {
        yield { ...use, count: Number(use.count) };
      }
    },
    unknownRealms: () => rows(UNKNOWN_REALMS),
    async *unreadableProxies() {
      if ((await schema()) < LOG_SCHEMA) return;
      for await (const { address, at } of rows<UnreadableProxy & { readonly at: Long }>(PROXIES))
        yield { address, at: Number(at) };
    },
  };
}

/** The first schema with the log. */
const LOG_SCHEMA = 2;

const APPLIED = 'select version, name, program_version as program from migration order by version';

async function* unfinishedPurges({ rows }: QueryRunner) {
  for (const { table, name } of RESOURCES) {
    yield* rows<UnfinishedPurge>(
      `select '${table}' as "table", realm_id as realm, id, '${name}' as resource
       from purge where resource = ? order by realm_id, id`,
      name,
    );
  }
}

const ISSUERS = `
  select realm, issuer, "table", count, id from (
    select realm_id as realm, issuer, '${oidcProfileInfo.table}' as "table", count(*) as count,
      min(cast(id as text)) as id
    from ${oidcProfileInfo.table} group by realm_id, issuer
    union all
    select realm_id, issuer, '${oidcProfile.table}', count(*), min(cast(id as text))
    from ${oidcProfile.table} group by realm_id, issuer
  ) as used order by realm, issuer`;

const FOREIGN_LINKS = `
  select '${oidcProfileInfo.table}' as "table", l.realm_id as realm, l.id as id
  from ${oidcProfileInfo.table} l
  join ${oidcProfile.table} p on p.realm_id = l.realm_id and p.id = l.oidc_profile_id
  where p.issuer <> l.issuer`;

const hashKindCounts = (runner: Pick<QueryRunner, 'position'>): string => `
  select '${passwordProfileInfo.table}' as "table", realm_id as realm, kind, count(*) as count
  from (select realm_id, ${hashKindOf(runner)} as kind from ${passwordProfileInfo.table}) as hashes
  where kind is not null group by realm_id, kind order by realm_id, kind`;

const UNKNOWN_REALMS = `
  select client_id as "clientId", realm_id as realm from client_realm
  where realm_id not in (select realm_id from ${realm.table}) order by client_id, realm_id`;

const PROXIES = `
  select address, max(at) as at from act where action = 'proxy.unreadable' group by address order by address`;
