import { Database } from 'bun:sqlite';
import { NIL_UUID } from '../../src/domain/id.ts';
import type { Resource } from '../../src/domain/resource.ts';
import { RESOURCES } from '../../src/domain/resources.ts';

/** A look at records and changes, which finds a row for each thing that is wrong. Both engines understand it. */
export interface ConsistencyCheck {
  readonly text: string;
  readonly values: readonly string[];
  /** What is wrong with the record or realm that a row names, in a sentence. */
  readonly describe: (id: string) => string;
}

/**
 * What is wrong with a database file, in sentences; empty where it is whole and records and changes agree exactly. Opens
 * the file as its owner would, so that a log left behind by a killed process is read first.
 */
export function findInconsistencies(path: string, looks = CONSISTENCY_CHECKS): readonly string[] {
  const db = new Database(path, { readwrite: true });
  try {
    const found = looks.flatMap(({ text, values, describe }) =>
      db
        .query<{ id: string }, string[]>(text)
        .all(...values)
        .map(({ id }) => describe(id)),
    );
    return [...wrongPages(db), ...found];
  } finally {
    db.close();
  }
}

function wrongPages(db: Database): string[] {
  const found = db.query<{ integrity_check: string }, []>('pragma integrity_check').all();
  const pages = found.map((row) => row.integrity_check).filter((text) => text !== 'ok');
  const orphans = db.query<{ table: string }, []>('pragma foreign_key_check').all();
  return [...pages, ...orphans.map(({ table }) => `a row of ${table} names one that is not there`)];
}

/**
 * The places of a realm's changes run from one to what its clock says, none left out; without changes there is no place.
 * The nil UUID has the acts of the installation.
 */
function brokenClocks(): ConsistencyCheck {
  const text = `with entry as (select realm_id, seq from change union all select '${NIL_UUID}', seq from act)
     select known.realm_id as id
     from (select realm_id from realm_clock union select realm_id from entry) as known
     left join (select realm_id, count(*) as places, min(seq) as first, max(seq) as last from entry
                group by realm_id) as told on told.realm_id = known.realm_id
     left join realm_clock on realm_clock.realm_id = known.realm_id
     where coalesce(first, 1) <> 1 or coalesce(last, 0) <> coalesce(places, 0) or coalesce(last, 0) <> coalesce(seq, 0)`;
  return { text, values: [], describe: (id) => `the clock of realm ${id} and its changes differ` };
}

const idColumn = ({ parent }: Resource): string => (parent === undefined ? 'realm_id' : 'id');

/**
 * Of each record of a resource: its newest change, and how often it was created and not deleted. Parameter: the
 * resource's name.
 */
const NEWEST = `with told as (
  select realm_id, record_id, user_id, revision, event,
    row_number() over (partition by realm_id, record_id order by seq desc) as age,
    sum(case event when ?1 || '.created' then 1 when ?1 || '.deleted' then -1 else 0 end)
      over (partition by realm_id, record_id) as births
  from change where substr(event, 1, length(?1) + 1) = ?1 || '.'),
newest as (select * from told where age = 1)`;

/** Records whose newest change is not the one that wrote their revision, or that nobody said were made. */
function unannounced(resource: Resource): ConsistencyCheck {
  const { name, table, parent } = resource;
  const id = idColumn(resource);
  const otherUser = parent?.foreignKey === 'user_id' ? 'or r.user_id is distinct from newest.user_id' : '';
  const text = `${NEWEST} select r.${id} as id from ${table} as r
     left join newest on newest.realm_id = r.realm_id and newest.record_id = r.${id}
     where newest.revision is distinct from r.revision or births is distinct from 1 ${otherUser}`;
  return { text, values: [name], describe: (found) => `${name} ${found} has no change of its revision` };
}

/** Changes of a record that is not there, and was never taken away. */
function missing(resource: Resource): ConsistencyCheck {
  const { name, table } = resource;
  const id = idColumn(resource);
  const text = `${NEWEST} select newest.record_id as id from newest
     left join ${table} as r on r.realm_id = newest.realm_id and r.${id} = newest.record_id
     where newest.event not in (?1 || '.deleted', ?1 || '.erased') and r.realm_id is null`;
  return { text, values: [name], describe: (found) => `${name} ${found} was announced and is not there` };
}

/** What is wrong where records and changes do not agree exactly. */
export const CONSISTENCY_CHECKS: readonly ConsistencyCheck[] = [
  brokenClocks(),
  ...RESOURCES.flatMap((resource) => [unannounced(resource), missing(resource)]),
];
