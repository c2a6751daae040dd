import type { Resource } from '../../src/domain/resource.ts';
import { RESOURCES } from '../../src/domain/resources.ts';
import type { TestDatabase } from '../support/database.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** A write that was asked for, under one request ID or several where it was sent again, and how it ended. */
export interface Asked {
  readonly ids: readonly string[];
  readonly outcome: 'done' | 'refused' | 'unknown';
  /** When it was first sent, and when it was known how it ended, on one clock for all. */
  readonly from: number;
  readonly to: number;
}

interface ChangeRow {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly record_id: string;
  readonly revision: string;
  /** Null of what was done from the command line. */
  readonly request_id: string | null;
}

/**
 * What is wrong with a database after these writes, in sentences. Its log holds; every write that was acknowledged left
 * changes, none that was refused did, there is no change of the service that nobody asked for, and what was acknowledged
 * before another write was sent stands before that one.
 */
export async function complaintsOf(
  database: TestDatabase,
  ledger: readonly Asked[],
): Promise<readonly string[]> {
  const changes = await changesOf(database);
  return [...(await verifyLog(database)), ...unasked(changes, ledger), ...outOfOrder(changes, ledger)];
}

/**
 * What is wrong with the log of a database, in sentences: its changes stand without a gap in each realm, replayed in their
 * order they give exactly the records that are there, and its chains are whole.
 */
export async function verifyLog(database: TestDatabase): Promise<readonly string[]> {
  const changes = await changesOf(database);
  const records = await Promise.all(RESOURCES.map((resource) => recordsOf(database, resource)));
  const verified = await runCommand([AUTHREALM, 'audit', 'verify', '--json', ...database.args]);
  const { findings } = JSON.parse(verified.stdout) as { findings: readonly { says: string }[] };
  return [
    ...(await database.findInconsistencies()),
    ...replayed(changes, records.flat()),
    ...findings.map(({ says }) => `the log: ${says}`),
  ];
}

function changesOf(database: TestDatabase): Promise<ChangeRow[]> {
  return database.query<ChangeRow>(
    'select realm_id, seq, event, record_id, revision, request_id from change order by realm_id, seq',
  );
}

/** Applies the changes to nothing, and holds what they make against the records. */
function replayed(changes: readonly ChangeRow[], records: readonly Stored[]): string[] {
  const made = new Map<string, string>();
  const complaints: string[] = [];
  for (const { realm_id, event, record_id, revision } of changes) {
    const [noun = '', verb] = event.split('.');
    // It tells of a record that is gone already.
    if (verb === 'erased') continue;
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
  const rows = await database.query<{ realm_id: string; id: string; revision: string }>(
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

/** Writes of one realm that stand behind one which was sent after they were acknowledged. */
function outOfOrder(changes: readonly ChangeRow[], ledger: readonly Asked[]): string[] {
  const asked = new Map(ledger.flatMap((each) => each.ids.map((id) => [id, each] as const)));
  const complaints: string[] = [];
  let realm = '';
  let latest: Asked | undefined;
  for (const { realm_id, request_id } of changes) {
    if (realm_id !== realm) latest = undefined;
    realm = realm_id;
    const own = asked.get(request_id ?? '');
    if (!own) continue;
    if (latest && own.outcome === 'done' && own.to < latest.from)
      complaints.push(
        `${own.ids[0]} was acknowledged before ${latest.ids[0]} was sent, and stands behind it`,
      );
    if (!latest || own.from > latest.from) latest = own;
  }
  return complaints;
}
