import type {
  FoldedText,
  HashKindUse,
  Inspection,
  IssuerUse,
  ListTotal,
  MigrationState,
  RecordCount,
  Rows,
  UnfinishedPurge,
  UnreadableProxy,
} from '../doctor/inspection.ts';
import { eventNumber } from '../domain/event.ts';
import { membersOf, type Resource } from '../domain/resource.ts';
import { oidcProfile, oidcProfileInfo, passwordProfileInfo, RESOURCES, realm } from '../domain/resources.ts';
import { COUNTED_RESOURCES, countColumn, IS_COUNTED } from './audit/record_counts.ts';
import { hashKindOf } from './auth/credentials.ts';
import type { Dialect } from './dialect.ts';
import { comparedColumn } from './records/derived_columns.ts';
import type { Long, SqlValue } from './transaction_work.ts';

/** How an engine runs the queries of `doctor`. */
export interface QueryRunner {
  /** The rows of a query with `?` placeholders, one by one, in one snapshot. */
  readonly rows: <T>(text: string, ...values: readonly SqlValue[]) => Rows<T>;
  readonly position: Dialect['position'];
  /** SQL for whether a text has other characters than printable ASCII. */
  readonly isBeyondAscii: (column: string) => string;
  /** SQL for the ID in a column of the log, as other tables store it. */
  readonly logIdText: (column: string) => string;
}

/** The queries of `doctor` that are the same for all engines. */
export type InspectionQueries = Pick<
  Inspection,
  | 'unfinishedPurges'
  | 'foldedTexts'
  | 'issuers'
  | 'foreignLinks'
  | 'recordCounts'
  | 'listTotals'
  | 'hashKinds'
  | 'unknownRealms'
  | 'unreadableProxies'
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
    foldedTexts: (unicodeVersion) => foldedTexts(runner, unicodeVersion),
    async *issuers() {
      for await (const use of rows<IssuerUse & { readonly count: Long }>(ISSUERS)) {
        yield { ...use, count: Number(use.count) };
      }
    },
    foreignLinks: () => rows(FOREIGN_LINKS),
    async *recordCounts() {
      yield* recordCounts(runner, (await schema()) >= LOG_SCHEMA);
    },
    async *listTotals() {
      if ((await schema()) >= LOG_SCHEMA) yield* listTotals(runner);
    },
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

/** The first schema with the log, whose oldest entries can be removed, and with the totals of lists. */
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

/** The key of an ASCII text is its lower case, which the engine compares itself, unless it has blanks that folding removes. */
async function* foldedTexts({ rows, isBeyondAscii, position }: QueryRunner, unicodeVersion: string) {
  for (const resource of RESOURCES) {
    for (const { name, annotation } of membersOf(resource)) {
      if (!annotation.foldedKeyColumn) continue;
      const key = comparedColumn(resource, name);
      yield* rows<FoldedText>(
        `select '${resource.table}' as "table", realm_id as realm, id, '${name}' as "column", ${name} as "text",
           ${key} as "key", unicode_version as "unicodeVersion"
         from ${resource.table}
         where ${key} is distinct from lower(${name})
           or (${name} is not null and (unicode_version <> ? or ${isBeyondAscii(name)}
             or ${name} <> trim(${name}) or ${position}(${name}, '  ') > 0))`,
        unicodeVersion,
      );
    }
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

type CountRow = { readonly realm: string } & Readonly<Record<`stored${number}` | `logged${number}`, Long>>;

/** Reads the log once for all tables. */
async function* recordCounts({ rows, logIdText }: QueryRunner, hasLog: boolean): AsyncGenerator<RecordCount> {
  const text = hasLog
    ? countsOf(
        [loggedIn('log_entry', logIdText('realm_id'), eventNumber), ...STORED, TRIMMED],
        'having sum(trimmed) = 0',
      )
    : countsOf([loggedIn('change', 'realm_id', (event) => `'${event}'`), ...STORED], '');
  for await (const row of rows<CountRow>(text)) {
    for (const [at, { table }] of RESOURCES.entries()) {
      const [stored, logged] = [Number(row[`stored${at}`]), Number(row[`logged${at}`])];
      yield { realm: row.realm, table, stored, logged };
    }
  }
}

/** Rows of a realm that are counted: the expressions by the names of their sums, and the table. */
interface Count {
  readonly sums: Readonly<Record<string, string>>;
  readonly from: string;
  /** SQL for the realm as text; default: its column. */
  readonly realmText?: string;
}

/** Counts the entries of a table of changes. */
function loggedIn(from: string, realmText: string, stored: (event: string) => number | string): Count {
  const sums = RESOURCES.map(({ name }, at) => {
    const count = (verb: string) => `count(*) filter (where event = ${stored(`${name}.${verb}`)})`;
    return [`logged${at}`, `${count('created')} - ${count('deleted')}`];
  });
  return { sums: Object.fromEntries(sums), from, realmText };
}

const storedRecords = (resources: readonly Resource[]): readonly Count[] =>
  resources.map(({ table }, at) => ({ sums: { [`stored${at}`]: 'count(*)' }, from: table }));
const STORED = storedRecords(RESOURCES);

const TRIMMED: Count = { sums: { trimmed: 'count(*)' }, from: 'realm_clock where anchor_entries > 0' };

/** A union and no join: each node of a cluster counts the realms that it has. */
function countsOf(counts: readonly Count[], having: string): string {
  const names = counts.flatMap(({ sums }) => Object.keys(sums));
  const parts = counts.map(({ sums, from, realmText = 'realm_id' }) => {
    const columns = names.map((name) => `${sums[name] ?? 0} as ${name}`);
    return `select ${realmText} as realm_id, ${columns.join(', ')} from ${from} group by realm_id`;
  });
  const sums = names.map((name) => `sum(${name}) as ${name}`);
  return `select realm_id as realm, ${sums.join(', ')} from (${parts.join(' union all ')}) as counted group by realm_id ${having}`;
}

const TOTALS: Count = {
  sums: {
    clocks: 'count(*)',
    ...Object.fromEntries(
      COUNTED_RESOURCES.map((resource, at) => [`reported${at}`, `sum(${countColumn(resource)})`]),
    ),
  },
  from: `realm_clock where ${IS_COUNTED}`,
};

type TotalRow = { readonly realm: string } & Readonly<Record<`stored${number}` | `reported${number}`, Long>>;

/** Without realms whose totals are not valid: their lists count the records. */
async function* listTotals({ rows }: QueryRunner): AsyncGenerator<ListTotal> {
  const text = countsOf([...storedRecords(COUNTED_RESOURCES), TOTALS], 'having sum(clocks) = 1');
  for await (const row of rows<TotalRow>(text)) {
    for (const [at, { table }] of COUNTED_RESOURCES.entries()) {
      const [stored, reported] = [Number(row[`stored${at}`]), Number(row[`reported${at}`])];
      yield { realm: row.realm, table, stored, reported };
    }
  }
}
