import { Database } from 'bun:sqlite';
import type { Resource } from '../src/domain/resource.ts';
import { RESOURCES } from '../src/domain/resources.ts';

/**
 * What is wrong with a database, in sentences; empty where the file is whole and records and changes agree exactly.
 * Opens the file as its owner would, so that a log left behind by a killed process is read first.
 */
export function disagreements(path: string): readonly string[] {
  const db = new Database(path, { readwrite: true });
  try {
    return [
      ...wrongPages(db),
      ...brokenClocks(db),
      ...RESOURCES.flatMap((resource) => [...unannounced(db, resource), ...missing(db, resource)]),
    ];
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

/** The places of a realm's changes run from one to what its clock says, none left out. */
function brokenClocks(db: Database): string[] {
  return db
    .query<{ realm: string }, []>(
      `select realm_id as realm from (select realm_id from realm_clock union select realm_id from change)
       left join (select realm_id, count(*) as places, min(seq) as first, max(seq) as last from change
                  group by realm_id) using (realm_id)
       left join realm_clock using (realm_id)
       where first is not 1 or last is not places or last is not seq`,
    )
    .all()
    .map(({ realm }) => `the clock of realm ${realm} and its changes differ`);
}

const idColumn = ({ parent }: Resource): string => (parent === undefined ? 'realm_id' : 'id');

/**
 * Of each record of a resource: its newest change, and how often it was created and not deleted. Parameter: the
 * resource's name.
 */
const NEWEST = `with newest as (
  select realm_id, record_id, user_id, revision, event, max(seq),
    sum((event = ?1 || '.created') - (event = ?1 || '.deleted')) as births
  from change where substr(event, 1, length(?1) + 1) = ?1 || '.' group by realm_id, record_id)`;

/** Records whose newest change is not the one that wrote their revision, or that nobody said were made. */
function unannounced(db: Database, resource: Resource): string[] {
  const id = idColumn(resource);
  const otherUser = resource.parent?.foreignKey === 'user_id' ? 'or r.user_id is not newest.user_id' : '';
  return db
    .query<{ id: string }, [string]>(
      `${NEWEST} select r.${id} as id from ${resource.table} as r
       left join newest on newest.realm_id = r.realm_id and newest.record_id = r.${id}
       where newest.revision is not r.revision or births is not 1 ${otherUser}`,
    )
    .all(resource.name)
    .map((row) => `${resource.name} ${row.id} has no change of its revision`);
}

/** Changes of a record that is not there, and was never taken away. */
function missing(db: Database, resource: Resource): string[] {
  const id = idColumn(resource);
  return db
    .query<{ id: string }, [string]>(
      `${NEWEST} select newest.record_id as id from newest
       left join ${resource.table} as r on r.realm_id = newest.realm_id and r.${id} = newest.record_id
       where newest.event <> ?1 || '.deleted' and r.realm_id is null`,
    )
    .all(resource.name)
    .map((row) => `${resource.name} ${row.id} was announced and is not there`);
}
