import { constants, Database, SQLiteError } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import type { AccessStore, SealedStore } from '../../access/port.ts';
import type {
  Inspection,
  KeptAnswers,
  KeyedText,
  MigrationState,
  RealmOrder,
  UnendedPurge,
  WrongSum,
} from '../../directory/inspection.ts';
import { Refusal } from '../../domain/fault.ts';
import { NIL_UUID } from '../../domain/id.ts';
import { membersOf } from '../../domain/resource.ts';
import { oidcProfile, oidcProfileInfo, RESOURCES, realm, user } from '../../domain/resources.ts';
import { openAccess } from '../access.ts';
import { checksum } from '../checksum.ts';
import type { Migration } from '../migrations.ts';
import { openSealed } from '../sealed.ts';
import { comparedColumn, summedColumn } from '../statements.ts';
import { MAPPED_BYTES_MAX } from './connection.ts';
import { SQLITE } from './dialect.ts';
import { openPlace } from './place.ts';
import { UNSHARED } from './snapshot.ts';
import { openTransactions } from './transactions.ts';
import { openWriter } from './writer.ts';

/** How long a question waits for a log that is being recovered. Nobody else runs in this process. */
const WAIT_MS = 5_000;
const CACHE_KIB = 65_536;
/** The engine's own check ends after so many complaints. */
const COMPLAINTS_MAX = 1_000;

/** The parts of the access ports that only read. */
export interface AccessInspection {
  readonly access: Pick<AccessStore, 'table' | 'keyChecks'>;
  readonly sealed: Pick<SealedStore, 'values'>;
}

export interface SqliteInspection extends Inspection {
  /** Its questions throw where the tables of access are not there. */
  readonly accessOf: () => AccessInspection;
}

/**
 * Opens a database to look at it. The connection cannot write, and holds no lock that a writer waits for: each question
 * has a snapshot of its own, so that the log does not grow for as long as all of them take.
 */
export function inspectSqlite(path: string, known: readonly Migration[]): SqliteInspection {
  if (!existsSync(path)) throw new Refusal(`there is no database ${path}: authrealm init makes it`);
  const { db, isStill } = openToLook(path);
  db.run(`pragma busy_timeout = ${WAIT_MS}`);
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
  const rows = <T>(sql: string, ...values: (string | number)[]): IterableIterator<T> =>
    db.prepare<T, (string | number)[]>(sql).iterate(...values);
  return {
    engine: () => versionOf(rows) + (isStill ? ', read as the file lies: its folder cannot be written' : ''),
    migrations: () => migrationsOf(rows, known),
    schema: () => schemaDifferences(db, known),
    integrity: () => complaintsOf(rows),
    orphans: () => orphansOf(rows),
    purges: () => purgesOf(rows),
    twins: () => twinsOf(rows),
    keyedTexts: (unicodeVersion) => keyedTextsOf(rows, unicodeVersion),
    wrongSums: () => wrongSumsOf(rows),
    issuers: () => rows(ISSUERS),
    foreignLinks: () => rows(FOREIGN_LINKS),
    orders: () => ordersOf(rows),
    lostRealms: () => rows(LOST_REALMS),
    answers: (now) => answersOf(rows, now),
    accessOf: () => {
      const writer = openWriter(db, UNSHARED, openPlace(path));
      const transactions = openTransactions(db, UNSHARED, writer);
      return { access: openAccess(transactions), sealed: openSealed(transactions, SQLITE) };
    },
    close: () => db.close(false),
  };
}

type Rows = <T>(sql: string, ...values: (string | number)[]) => IterableIterator<T>;

/**
 * A log keeps its index beside the database, which takes a folder that can be written. Where it cannot, and no log is
 * there, nobody has the database open: it is then read as a file that does not change.
 */
function openToLook(path: string): { readonly db: Database; readonly isStill: boolean } {
  const db = new Database(path, { readonly: true });
  try {
    db.query('select count(*) from sqlite_schema').get();
  } catch (error) {
    if (error instanceof SQLiteError && NEEDS_FOLDER.test(error.code ?? '') && !existsSync(`${path}-wal`)) {
      db.close(false);
      const still = `${Bun.pathToFileURL(path).href}?immutable=1`;
      return {
        db: new Database(still, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI),
        isStill: true,
      };
    }
  }
  return { db, isStill: false };
}

const NEEDS_FOLDER = /^SQLITE_(READONLY|CANTOPEN)/;

function versionOf(rows: Rows): string {
  return `sqlite ${[...rows<{ version: string }>('select sqlite_version() as version')][0]?.version}`;
}

function migrationsOf(rows: Rows, known: readonly Migration[]): MigrationState {
  const applied = rows<{ version: number; name: string; program: string }>(
    'select version, name, program_version as program from migration order by version',
  );
  return { applied: [...applied], known };
}

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

const SCHEMA = `select type, name, sql from sqlite_schema where name not like 'sqlite_%' and name <> 'migration'`;

/** Compares the schema with one that the same migrations make from nothing; not where the file has others. */
function* schemaDifferences(db: Database, known: readonly Migration[]) {
  const applied = db.query<{ version: number }, []>('select version from migration').all();
  if (applied.some(({ version }) => !known.some((each) => each.version === version))) return;
  const model = new Database(':memory:');
  try {
    const done = known.filter(({ version }) => applied.some((each) => each.version === version));
    for (const { sql } of done) model.run(sql);
    const wanted = model.query<SchemaRow, []>(SCHEMA).all();
    const found = new Map(
      db
        .query<SchemaRow, []>(SCHEMA)
        .all()
        .map((row) => [row.name, row]),
    );
    for (const { type, name, sql } of wanted) {
      const there = found.get(name);
      found.delete(name);
      if (!there) yield { type, name, is: 'missing' };
      else if (there.sql !== sql) yield { type, name, is: 'not as this program makes it' };
    }
    for (const { type, name } of found.values()) yield { type, name, is: 'none of this program' };
  } finally {
    model.close();
  }
}

function* complaintsOf(rows: Rows): Iterable<string> {
  for (const { integrity_check: says } of rows<{ integrity_check: string }>(
    `pragma integrity_check(${COMPLAINTS_MAX})`,
  )) {
    if (says !== 'ok') yield says.replaceAll('\n', ' ');
  }
}

interface ForeignKeyColumn {
  readonly id: number;
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

/** The engine names tables and slots, which say nothing to an operator; a search of those tables names records. */
function* orphansOf(rows: Rows) {
  const broken = rows<{ table: string; fkid: number }>(
    'select distinct "table", fkid from pragma_foreign_key_check',
  );
  for (const { table, fkid } of [...broken]) {
    const columns = [...rows<ForeignKeyColumn>('select * from pragma_foreign_key_list(?)', table)].filter(
      ({ id }) => id === fkid,
    );
    const above = columns[0]?.table ?? '';
    const on = columns.map(({ from, to }) => `p.${to} = c.${from}`).join(' and ');
    const isNamed = columns.map(({ from }) => `c.${from} is not null`).join(' and ');
    const [realm, id] = table === 'client_realm' ? ['c.realm_id', 'c.client_id'] : ['c.realm_id', 'c.id'];
    yield* rows<{ table: string; realm: string; id: string; names: string }>(
      `select '${table}' as "table", ${realm} as realm, ${id} as id, '${above}' as names from ${table} c
       where ${isNamed} and not exists (select 1 from ${above} p where ${on})`,
    );
  }
}

/** The marks that a purge leaves until it is done. */
function* purgesOf(rows: Rows): Iterable<UnendedPurge> {
  for (const resource of RESOURCES) {
    yield* rows<UnendedPurge>(
      `select '${resource.table}' as "table", realm_id as realm, id, '${resource.name}' as resource
       from purge where resource = ? order by realm_id, id`,
      resource.name,
    );
  }
}

/** Every row is read, never through the index that should have kept twins out. */
function* twinsOf(rows: Rows) {
  for (const resource of RESOURCES) {
    const key = resource.parent ? [['id']] : [];
    for (const unique of [...key, ...resource.unique]) {
      const columns = ['realm_id', ...unique.map((name) => comparedColumn(resource, name))].join(', ');
      yield* rows<{
        table: string;
        realm: string;
        id: string;
        other: string;
        count: number;
        members: string;
      }>(
        `select '${resource.table}' as "table", realm_id as realm, min(id) as id, max(id) as other,
           count(*) as count, '${unique.join(' and ')}' as members
         from ${resource.table} not indexed group by ${columns} having count(*) > 1`,
      );
    }
  }
}

/** What is plain ASCII is its own key but for its case; the engine can tell so much by itself. */
const PLAIN_NOT = `'*[^ -~]*'`;

function* keyedTextsOf(rows: Rows, unicodeVersion: string): Iterable<KeyedText> {
  for (const resource of RESOURCES) {
    for (const { name, placement } of membersOf(resource)) {
      if (!placement.folded) continue;
      const key = comparedColumn(resource, name);
      yield* rows<KeyedText>(
        `select '${resource.table}' as "table", realm_id as realm, id, '${name}' as "column", ${name} as text,
           ${key} as "key", unicode_version as unicodeVersion
         from ${resource.table} not indexed
         where ${key} is not lower(${name})
           or (${name} is not null and (unicode_version <> ? or ${name} glob ${PLAIN_NOT}))`,
        unicodeVersion,
      );
    }
  }
}

/** Each sum is made again of the column that it stands for; whether that one is right is asked elsewhere. */
function* wrongSumsOf(rows: Rows): Iterable<WrongSum> {
  for (const resource of RESOURCES) {
    const { table } = resource;
    for (const { name, placement } of membersOf(resource)) {
      if (!placement.summed) continue;
      const [compared, column] = [comparedColumn(resource, name), summedColumn(name)];
      const found = rows<{ realm: string; id: string; text: string; sum: number }>(
        `select realm_id as realm, id, ${compared} as text, ${column} as sum from ${table} not indexed`,
      );
      for (const { realm, id, text, sum } of found) {
        if (sum !== checksum(text)) yield { table, realm, id, column, of: compared };
      }
    }
  }
}

function answersOf(rows: Rows, now: number): KeptAnswers {
  const [counted] = rows<KeptAnswers>(
    `select count(*) as count, coalesce(sum(expires_at <= ?), 0) as expired, coalesce(sum(${IS_LOST}), 0) as lost
     from idempotency m`,
    now,
  );
  return counted ?? { count: 0, expired: 0, lost: 0 };
}

/** The realm of an answer, the user it tells about, or the realm whose creation it tells is not there. */
const IS_LOST = `
  (realm_id <> '${NIL_UUID}' and not exists (select 1 from ${realm.table} r where r.realm_id = m.realm_id))
  or (realm_id = '${NIL_UUID}' and record_id is not null
    and not exists (select 1 from ${realm.table} r where r.realm_id = m.record_id))
  or (user_id is not null
    and not exists (select 1 from ${user.table} u where u.realm_id = m.realm_id and u.id = m.user_id))`;

const ISSUERS = `
  select realm, issuer, "table", count, id from (
    select realm_id as realm, issuer, '${oidcProfileInfo.table}' as "table", count(*) as count, min(id) as id
    from ${oidcProfileInfo.table} group by realm_id, issuer
    union all
    select realm_id, issuer, '${oidcProfile.table}', count(*), min(id)
    from ${oidcProfile.table} group by realm_id, issuer
  ) order by realm, issuer`;

const FOREIGN_LINKS = `
  select '${oidcProfileInfo.table}' as "table", l.realm_id as realm, l.id as id
  from ${oidcProfileInfo.table} l
  join ${oidcProfile.table} p on p.realm_id = l.realm_id and p.id = l.oidc_profile_id
  where p.issuer <> l.issuer`;

const LOST_REALMS = `
  select client_id as clientId, realm_id as realm from client_realm
  where realm_id not in (select realm_id from realm) order by client_id, realm_id`;

interface OrderRow {
  readonly realm: string;
  readonly clock: number | null;
  readonly first: number | null;
  readonly last: number | null;
  readonly count: number;
  readonly [counter: `expected${number}` | `found${number}`]: number;
}

/** One walk over the changes: what their order is, and how many records of each kind they leave. */
function* ordersOf(rows: Rows): Iterable<RealmOrder> {
  const sums = RESOURCES.map(
    ({ name }, at) => `sum((event = '${name}.created') - (event = '${name}.deleted')) as expected${at}`,
  );
  const counts = RESOURCES.map(
    ({ table }, at) =>
      `coalesce(expected${at}, 0) as expected${at},
       (select count(*) from ${table} r where r.realm_id = of.realm_id) as found${at}`,
  );
  const found = rows<OrderRow>(
    `with walked as (select realm_id, min(seq) as first, max(seq) as last, count(*) as count, ${sums.join(', ')}
       from change group by realm_id),
     of as (select realm_id from realm union select realm_id from realm_clock union select realm_id from walked)
     select of.realm_id as realm, k.seq as clock, first, last, coalesce(count, 0) as count, ${counts.join(', ')}
     from of left join walked w on w.realm_id = of.realm_id
       left join realm_clock k on k.realm_id = of.realm_id`,
  );
  for (const { realm, clock, first, last, count, ...counters } of found) {
    const records = RESOURCES.map(({ table }, at) => ({
      table,
      expected: counters[`expected${at}`] ?? 0,
      found: counters[`found${at}`] ?? 0,
    }));
    yield { realm, clock, first, last, count, records };
  }
}
