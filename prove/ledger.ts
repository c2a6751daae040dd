import type { Resource } from '../src/domain/resource.ts';
import { RESOURCES } from '../src/domain/resources.ts';
import type { TestDatabase } from '../test/database.ts';

/** A write that was asked for, under one request ID or several where it was sent again, and how it ended. */
export interface Asked {
  readonly ids: readonly string[];
  readonly outcome: 'done' | 'refused' | 'unknown';
}

interface ChangeRow {
  readonly realm_id: string;
  readonly event: string;
  readonly record_id: string;
  readonly revision: string;
  /** Null of what was done from the command line. */
  readonly request_id: string | null;
}

/**
 * What is wrong with a database after these writes, in sentences. Its changes, replayed in their order, give exactly the
 * records that are there; every write that was acknowledged left changes, none that was refused did, and there is no
 * change of the service that nobody asked for.
 */
export async function complaintsOf(
  database: TestDatabase,
  ledger: readonly Asked[],
): Promise<readonly string[]> {
  const changes = await database.ask<ChangeRow>('select * from change order by realm_id, seq');
  const records = await Promise.all(RESOURCES.map((resource) => recordsOf(database, resource)));
  const wrong = await database.disagreements();
  return [...wrong, ...replayed(changes, records.flat()), ...unasked(changes, ledger)];
}

/** Applies the changes to nothing, and holds what they make against the records. */
function replayed(changes: readonly ChangeRow[], records: readonly Stored[]): string[] {
  const made = new Map<string, string>();
  const complaints: string[] = [];
  for (const { realm_id, event, record_id, revision } of changes) {
    const [noun = '', verb] = event.split('.');
    const place = `${noun} ${realm_id} ${record_id}`;
    if ((verb === 'created') === made.has(place)) complaints.push(`${place} is ${verb} out of turn`);
    if (verb === 'deleted' && made.get(place) !== revision)
      complaints.push(`${place} was deleted as of a revision it did not have`);
    if (verb === 'deleted') made.delete(place);
    else made.set(place, revision);
  }
  for (const [place, revision] of records) {
    if (made.get(place) !== revision) complaints.push(`${place} is not what its changes say`);
    made.delete(place);
  }
  return [...complaints, ...[...made.keys()].map((place) => `the changes of ${place} made no record`)];
}

type Stored = readonly [place: string, revision: string];

async function recordsOf(
  database: TestDatabase,
  { name, table, parent }: Resource,
): Promise<readonly Stored[]> {
  const id = parent ? 'id' : 'realm_id';
  const rows = await database.ask<{ realm_id: string; id: string; revision: string }>(
    `select realm_id, ${id} as id, revision from ${table}`,
  );
  return rows.map((row) => [`${name} ${row.realm_id} ${row.id}`, row.revision]);
}

function unasked(changes: readonly ChangeRow[], ledger: readonly Asked[]): string[] {
  const left = new Set(changes.flatMap(({ request_id }) => request_id ?? []));
  const complaints: string[] = [];
  for (const { ids, outcome } of ledger) {
    const landed = ids.filter((id) => left.has(id));
    if (outcome === 'done' && landed.length !== 1)
      complaints.push(`${ids[0]} was acknowledged and left ${landed.length} commits`);
    if (outcome === 'refused' && landed.length > 0)
      complaints.push(`${ids[0]} was refused and left a change`);
    for (const id of ids) left.delete(id);
  }
  return [...complaints, ...[...left].map((id) => `nobody asked for the changes of ${id}`)];
}
