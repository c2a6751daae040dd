import { Database } from 'bun:sqlite';
import { NIL_UUID } from '../../src/model/id.ts';
import type { Resource } from '../../src/model/resource.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { COUNTED_RESOURCES, countColumn } from '../../src/sql/tables/record_counts.ts';
import { type EngineName, idText, realmText, storedId, storedRealm, withChanges } from './log_rows.ts';

/**
 * A query over records and changes that returns a row for each inconsistency, on both engines. It continues the common table
 * expressions of `withChanges`.
 */
export interface ConsistencyCheck {
  /** Knows the resources that are checked. */
  readonly withChanges: typeof withChanges;
  readonly text: (engine: EngineName) => string;
  readonly values: readonly string[];
  /** A sentence about the inconsistency of this record or realm. */
  readonly describe: (id: string) => string;
}

/**
 * Sentences about damage to a database file and inconsistencies between records and changes. Opens the file for writing, so
 * that the write-ahead log of a killed process is applied.
 */
export function findInconsistencies(path: string, checks = CONSISTENCY_CHECKS): readonly string[] {
  const db = new Database(path, { readwrite: true });
  try {
    storeChanges(db, checks);
    const found = checks.flatMap((check) =>
      db
        .query<{ id: string }, string[]>(
          `with change as (select * from stored_change) ${check.text('sqlite')}`,
        )
        .all(...check.values)
        .map(({ id }) => check.describe(id)),
    );
    return [...integrityErrors(db), ...found];
  } finally {
    db.close();
  }
}

/** Reads the changes once: joined as a common table expression, those of 100,000 records take minutes. */
function storeChanges(db: Database, [check]: readonly ConsistencyCheck[]): void {
  if (check) db.run(`create temp table stored_change as ${check.withChanges('sqlite')} select * from change`);
}

function integrityErrors(db: Database): string[] {
  const found = db.query<{ integrity_check: string }, []>('pragma integrity_check').all();
  const pages = found.map((row) => row.integrity_check).filter((text) => text !== 'ok');
  const orphans = db.query<{ table: string }, []>('pragma foreign_key_check').all();
  return [...pages, ...orphans.map(({ table }) => `a row of ${table} refers to a missing one`)];
}

/**
 * The sequence of a realm's changes runs without gaps from 1 to the value of its clock. The nil UUID has the audit entries of
 * the installation.
 */
function wrongClocks(): ConsistencyCheck {
  const text = `, entry as (select realm_id, seq from change union all select '${NIL_UUID}', seq from act)
     select known.realm_id as id
     from (select realm_id from realm_clock union select realm_id from entry) as known
     left join (select realm_id, count(*) as changes, min(seq) as first, max(seq) as last from entry
                group by realm_id) as logged on logged.realm_id = known.realm_id
     left join realm_clock on realm_clock.realm_id = known.realm_id
     where coalesce(first, 1) <> 1 or coalesce(last, 0) <> coalesce(changes, 0) or coalesce(last, 0) <> coalesce(seq, 0)`;
  return {
    withChanges,
    text: () => text,
    values: [],
    describe: (id) => `the clock of realm ${id} and its changes differ`,
  };
}

/** The totals of lists that the clock of a realm has. */
function wrongTotals(): ConsistencyCheck {
  const differences = (engine: EngineName) =>
    COUNTED_RESOURCES.map(
      (resource) => `${countColumn(resource)} <>
        (select count(*) from ${resource.table} r where r.realm_id = ${storedRealm(engine, 'k.realm_id')})`,
    );
  const text = (engine: EngineName) => ` select k.realm_id as id from realm_clock k
     where ${differences(engine).join(' or ')}`;
  return { withChanges, text, values: [], describe: (id) => `the clock of realm ${id} has wrong totals` };
}

const idColumn = ({ parent }: Resource): string => (parent === undefined ? 'realm_id' : 'id');

/** For each record of a resource: its newest change, and its creations minus its deletions. Parameter: the resource's name. */
const NEWEST = `, numbered as (
  select realm_id, record_id, user_id, revision, event,
    row_number() over (partition by realm_id, record_id order by seq desc) as age,
    sum(case event when ?1 || '.created' then 1 when ?1 || '.deleted' then -1 else 0 end)
      over (partition by realm_id, record_id) as births
  from change where substr(event, 1, length(?1) + 1) = ?1 || '.'),
newest as (select * from numbered where age = 1)`;

/** Records whose newest change has another revision, or without a change that created them. */
function recordsWithoutChange(resource: Resource): ConsistencyCheck {
  const { name, table, parent } = resource;
  const id = idColumn(resource);
  const otherUser = (engine: EngineName) =>
    parent?.foreignKey === 'user_id'
      ? `or ${idText(engine, 'r.user_id')} is distinct from newest.user_id`
      : '';
  const text = (engine: EngineName) => `${NEWEST} select ${idText(engine, `r.${id}`)} as id from ${table} as r
     left join newest on newest.realm_id = ${parent ? realmText(engine, 'r') : idText(engine, 'r.realm_id')}
       and newest.record_id = ${idText(engine, `r.${id}`)}
     where newest.revision is distinct from r.revision or births is distinct from 1 ${otherUser(engine)}`;
  return {
    withChanges,
    text,
    values: [name],
    describe: (found) => `${name} ${found} has no change with its revision`,
  };
}

/** Changes of records that do not exist and were never deleted. */
function missingRecords(resource: Resource): ConsistencyCheck {
  const { name, table, parent } = resource;
  const id = idColumn(resource);
  const text = (engine: EngineName) => `${NEWEST} select newest.record_id as id from newest
     left join ${table} as r on r.realm_id = ${(parent ? storedRealm : storedId)(engine, 'newest.realm_id')}
       and r.${id} = ${storedId(engine, 'newest.record_id')}
     where newest.event not in (?1 || '.deleted', ?1 || '.erased') and r.realm_id is null`;
  return {
    withChanges,
    text,
    values: [name],
    describe: (found) => `${name} ${found} has changes and does not exist`,
  };
}

/** Every check of records against changes. */
export const CONSISTENCY_CHECKS: readonly ConsistencyCheck[] = [
  wrongClocks(),
  wrongTotals(),
  ...RESOURCES.flatMap((resource) => [recordsWithoutChange(resource), missingRecords(resource)]),
];
