import type {
  Inspection,
  IssuerUse,
  KeptAnswers,
  KeyedText,
  MigrationState,
  Placed,
  RealmOrder,
  Rows,
  Twins,
  UnendedPurge,
} from '../directory/inspection.ts';
import { NIL_UUID } from '../domain/id.ts';
import { keyColumns, membersOf, type Resource } from '../domain/resource.ts';
import { oidcProfile, oidcProfileInfo, RESOURCES, realm, user } from '../domain/resources.ts';
import { comparedColumn, type SqlValue } from './statements.ts';
import type { Long } from './work.ts';

/** How a database is asked, and what engines say differently about whole tables. */
export interface Asking {
  /** The rows of a text with the places `?`, one by one, all of one moment. */
  readonly rows: <T>(text: string, ...values: readonly SqlValue[]) => Rows<T>;
  /** The same of a text that must not be answered from an index: an index may be what is wrong. */
  readonly rowsByTable: Asking['rows'];
  /** Behind the name of a table in such a text. */
  readonly unindexed: string;
  /** Whether a text has more than plain ASCII. */
  readonly isNotPlain: (column: string) => string;
}

/** What `doctor` asks of every engine in the same words. */
export type Questions = Pick<
  Inspection,
  | 'orphans'
  | 'purges'
  | 'twins'
  | 'keyedTexts'
  | 'issuers'
  | 'foreignLinks'
  | 'orders'
  | 'answers'
  | 'lostRealms'
> & {
  /** The migrations that a database has, in order. */
  readonly applied: () => Rows<MigrationState['applied'][number]>;
  /** The newest of them: what later ones bring is not there yet. */
  readonly schema: () => Promise<number>;
};

export function questionsOver(asking: Asking): Questions {
  return {
    applied: () => asking.rows(APPLIED),
    schema: () => schemaOf(asking),
    orphans: () => orphansOf(asking),
    purges: () => purgesOf(asking),
    twins: () => twinsOf(asking),
    keyedTexts: (unicodeVersion) => keyedTextsOf(asking, unicodeVersion),
    issuers: () => counted(asking.rows<Raw<IssuerUse>>(ISSUERS)),
    foreignLinks: () => asking.rows(FOREIGN_LINKS),
    orders: () => ordersOf(asking),
    answers: (now) => answersOf(asking, now),
    lostRealms: () => asking.rows(LOST_REALMS),
  };
}

/** The schema that brings acts, chains and webhooks. */
const LOG_SCHEMA = 2;

const APPLIED = 'select version, name, program_version as program from migration order by version';

async function schemaOf({ rows }: Asking): Promise<number> {
  let newest = 0;
  for await (const { version } of rows<{ version: number }>(APPLIED)) newest = version;
  return newest;
}

/** Some engines answer long numbers as text. */
async function* counted<T extends { readonly count: Long }>(
  rows: Rows<T>,
): AsyncGenerator<Omit<T, 'count'> & { readonly count: number }> {
  for await (const { count, ...row } of rows) yield { ...row, count: Number(count) };
}

/** A row as an engine answers it. */
type Raw<T extends { readonly count: number }> = Omit<T, 'count'> & { readonly count: Long };

/** Columns of a table that name a row of another one. */
interface Tie {
  readonly table: string;
  readonly realm: string;
  readonly id: string;
  /** By the columns that they name. */
  readonly columns: Readonly<Record<string, string>>;
  readonly above: string;
  /** The schema that brings it, unless it was there from the first. */
  readonly since?: number;
}

/** Those of the descriptions, and those between instance tables. */
const TIES: readonly Tie[] = [
  ofInstance('client_realm', 'client'),
  { ...ofInstance('webhook_realm', 'webhook'), since: LOG_SCHEMA },
  { ...ofInstance('webhook_progress', 'webhook'), since: LOG_SCHEMA },
  ...RESOURCES.flatMap((resource) => [
    ...(resource.parent ? [tie(resource, resource.parent, keyColumns(resource).at(-2) ?? '')] : []),
    ...membersOf(resource).flatMap(({ name, placement }) =>
      RESOURCES.filter((other) => other.name === placement.references).map((other) =>
        tie(resource, other, name),
      ),
    ),
  ]),
];

function tie({ table }: Resource, above: Resource, column: string): Tie {
  const columns = above.parent ? { realm_id: 'realm_id', id: column } : { realm_id: column };
  return { table, realm: 'realm_id', id: 'id', columns, above: above.table };
}

function ofInstance(table: string, above: string): Tie {
  const id = `${above}_id`;
  return { table, realm: 'realm_id', id, columns: { [id]: id }, above };
}

async function* orphansOf(asking: Asking) {
  const schema = await schemaOf(asking);
  for (const { table, realm, id, columns, above } of TIES.filter(({ since = 1 }) => since <= schema)) {
    const pairs = Object.entries(columns);
    const on = pairs.map(([named, by]) => `p.${named} = c.${by}`).join(' and ');
    const isNamed = pairs.map(([, by]) => `c.${by} is not null`).join(' and ');
    yield* asking.rows<Placed & { readonly names: string }>(
      `select '${table}' as "table", c.${realm} as realm, c.${id} as id, '${above}' as names from ${table} c
       where ${isNamed} and not exists (select 1 from ${above} p where ${on})`,
    );
  }
}

/** The marks that a purge leaves until it is done. */
async function* purgesOf({ rows }: Asking) {
  for (const { table, name } of RESOURCES) {
    yield* rows<UnendedPurge>(
      `select '${table}' as "table", realm_id as realm, id, '${name}' as resource
       from purge where resource = ? order by realm_id, id`,
      name,
    );
  }
}

/** Every row is read, never through the index that should have kept twins out. */
async function* twinsOf({ rowsByTable, unindexed }: Asking) {
  for (const resource of RESOURCES) {
    const { table } = resource;
    const key = resource.parent ? [['id']] : [];
    for (const unique of [...key, ...resource.unique]) {
      const columns = ['realm_id', ...unique.map((name) => comparedColumn(resource, name))].join(', ');
      yield* counted(
        rowsByTable<Raw<Twins>>(
          `select '${table}' as "table", realm_id as realm, min(cast(id as text)) as id,
             max(cast(id as text)) as other, count(*) as count, '${unique.join(' and ')}' as members
           from ${table}${unindexed} group by ${columns} having count(*) > 1`,
        ),
      );
    }
  }
}

/** What is plain ASCII is its own key but for its case; an engine can tell so much by itself. */
async function* keyedTextsOf({ rowsByTable, unindexed, isNotPlain }: Asking, unicodeVersion: string) {
  for (const resource of RESOURCES) {
    for (const { name, placement } of membersOf(resource)) {
      if (!placement.folded) continue;
      const key = comparedColumn(resource, name);
      yield* rowsByTable<KeyedText>(
        `select '${resource.table}' as "table", realm_id as realm, id, '${name}' as "column", ${name} as "text",
           ${key} as "key", unicode_version as "unicodeVersion"
         from ${resource.table}${unindexed}
         where ${key} is distinct from lower(${name})
           or (${name} is not null and (unicode_version <> ? or ${isNotPlain(name)}))`,
        unicodeVersion,
      );
    }
  }
}

async function answersOf({ rows }: Asking, now: number): Promise<KeptAnswers> {
  for await (const { count, expired, lost } of rows<{ count: Long; expired: Long; lost: Long }>(ANSWERS, now))
    return { count: Number(count), expired: Number(expired), lost: Number(lost) };
  return { count: 0, expired: 0, lost: 0 };
}

/** The realm of an answer, the user it tells about, or the realm whose creation it tells is not there. */
const IS_LOST = `
  (realm_id <> '${NIL_UUID}' and not exists (select 1 from ${realm.table} r where r.realm_id = m.realm_id))
  or (realm_id = '${NIL_UUID}' and record_id is not null
    and not exists (select 1 from ${realm.table} r where r.realm_id = m.record_id))
  or (user_id is not null
    and not exists (select 1 from ${user.table} u where u.realm_id = m.realm_id and u.id = m.user_id))`;

const ANSWERS = `
  select count(*) as count, count(*) filter (where expires_at <= ?) as expired,
    count(*) filter (where ${IS_LOST}) as lost
  from idempotency m`;

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

const LOST_REALMS = `
  select client_id as "clientId", realm_id as realm from client_realm
  where realm_id not in (select realm_id from ${realm.table}) order by client_id, realm_id`;

interface OrderRow {
  readonly realm: string;
  readonly clock: Long | null;
  readonly trimmed: Long | null;
  readonly first: Long | null;
  readonly last: Long | null;
  readonly count: Long;
  readonly [counter: `expected${number}` | `found${number}`]: Long;
}

/** One walk over the changes: what their order is, and how many records of each kind they leave. Then one over the acts. */
async function* ordersOf(asking: Asking): AsyncGenerator<RealmOrder> {
  const isLogged = (await schemaOf(asking)) >= LOG_SCHEMA;
  for await (const row of asking.rows<OrderRow>(ordersText(isLogged ? TRIMMED : '0'))) {
    const records = RESOURCES.map(({ table }, at) => ({
      table,
      expected: Number(row[`expected${at}`] ?? 0),
      found: Number(row[`found${at}`] ?? 0),
    }));
    yield { ...orderOf(row), table: 'change', records };
  }
  if (!isLogged) return;
  for await (const row of asking.rows<OrderRow>(ACT_ORDER)) {
    yield { ...orderOf(row), table: 'act', records: [] };
  }
}

function orderOf({ realm, clock, trimmed, first, last, count }: OrderRow) {
  return {
    realm,
    clock: numberOf(clock),
    trimmed: Number(trimmed ?? 0),
    first: numberOf(first),
    last: numberOf(last),
    count: Number(count),
  };
}

function numberOf(value: Long | null): number | null {
  return value === null ? null : Number(value);
}

const EVENT_SUMS = RESOURCES.map(({ name }, at) => {
  const events = (what: string) => `count(*) filter (where event = '${name}.${what}')`;
  return `${events('created')} - ${events('deleted')} as expected${at}`;
});

const RECORD_COUNTS = RESOURCES.map(
  ({ table }, at) =>
    `coalesce(expected${at}, 0) as expected${at},
     (select count(*) from ${table} r where r.realm_id = o.realm_id) as found${at}`,
);

/** Where a log begins since its oldest entries were removed; until then it begins with its chain, or before. */
const TRIMMED = 'case when k.anchor_entries > 0 then k.anchor_seq end';

const ordersText = (trimmed: string) => `
  with walked as (
    select realm_id, min(seq) as first, max(seq) as last, count(*) as count, ${EVENT_SUMS.join(', ')}
    from change group by realm_id),
  told as (select realm_id from ${realm.table} union select realm_id from walked
    union select realm_id from realm_clock where realm_id <> '${NIL_UUID}')
  select o.realm_id as realm, k.seq as clock, ${trimmed} as trimmed, first, last, coalesce(count, 0) as count,
    ${RECORD_COUNTS.join(', ')}
  from told o left join walked w on w.realm_id = o.realm_id
    left join realm_clock k on k.realm_id = o.realm_id`;

const ACT_ORDER = `
  select '${NIL_UUID}' as realm, k.seq as clock, ${TRIMMED} as trimmed, first, last, count
  from (select min(seq) as first, max(seq) as last, count(*) as count from act) as walked
    left join realm_clock k on k.realm_id = '${NIL_UUID}'`;
