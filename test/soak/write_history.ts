import type { Resource } from '../../src/model/resource.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import type { TestDatabase } from '../support/database.ts';
import { idText, realmText } from '../support/log_rows.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** A write with the request IDs of its attempts, and its outcome. */
export interface WriteAttempt {
  readonly ids: readonly string[];
  readonly outcome: 'acknowledged' | 'rejected' | 'unknown';
  /** When it was first sent, and when its outcome was known, on one monotonic clock. */
  readonly from: number;
  readonly to: number;
}

interface ChangeRow {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly record_id: string;
  readonly revision: string;
  /** Null for changes made from the command line. */
  readonly request_id: string | null;
}

/**
 * Inconsistencies of a database with these writes, in sentences. Its change log must be correct; every acknowledged write
 * must have changes, a rejected one none; every change over HTTP must belong to a request; and a write that was acknowledged
 * before another was sent must precede it in the log.
 */
export async function findInconsistencies(
  database: TestDatabase,
  history: readonly WriteAttempt[],
): Promise<readonly string[]> {
  const changes = await changesOf(database);
  return [
    ...(await findLogErrors(database)),
    ...outcomeErrors(changes, history),
    ...orderErrors(changes, history),
  ];
}

/**
 * Errors of the change log, in sentences: sequences must have no gap in a realm, replaying the changes must give exactly the
 * stored records, and the hash chains must verify.
 */
export async function findLogErrors(database: TestDatabase): Promise<readonly string[]> {
  const changes = await changesOf(database);
  const records = await Promise.all(RESOURCES.map((resource) => recordsOf(database, resource)));
  const verified = await runCommand([AUTHREALM, 'audit', 'verify', '--json', ...database.args]);
  const { findings } = JSON.parse(verified.stdout) as { findings: readonly { says: string }[] };
  return [
    ...(await database.findInconsistencies()),
    ...replayErrors(changes, records.flat()),
    ...findings.map(({ says }) => `audit verify: ${says}`),
  ];
}

function changesOf(database: TestDatabase): Promise<ChangeRow[]> {
  return database.queryChanges<ChangeRow>(
    'select realm_id, seq, event, record_id, revision, request_id from change order by realm_id, seq',
  );
}

/** Replays the changes and compares the result with the stored records. */
function replayErrors(changes: readonly ChangeRow[], records: readonly StoredRevision[]): string[] {
  const revisions = new Map<string, string>();
  const complaints: string[] = [];
  for (const { realm_id, event, record_id, revision } of changes) {
    const [noun = '', verb] = event.split('.');
    // An erasure follows the deletion of its record.
    if (verb === 'erased') continue;
    const record = `${noun} ${realm_id} ${record_id}`;
    if ((verb === 'created') === revisions.has(record)) complaints.push(`${record} is ${verb} out of order`);
    if (verb === 'deleted' && revisions.get(record) !== revision)
      complaints.push(`${record} was deleted at a revision that it did not have`);
    if (verb === 'deleted') revisions.delete(record);
    else revisions.set(record, revision);
  }
  for (const [record, revision] of records) {
    if (revisions.get(record) !== revision) complaints.push(`${record} differs from its changes`);
    revisions.delete(record);
  }
  return [...complaints, ...[...revisions.keys()].map((record) => `${record} has changes and no record`)];
}

type StoredRevision = readonly [record: string, revision: string];

async function recordsOf(
  database: TestDatabase,
  { name, table, parent }: Resource,
): Promise<readonly StoredRevision[]> {
  const { engine } = database.address;
  const id = idText(engine, parent ? 'id' : 'realm_id');
  const realmId = parent ? realmText(engine, table) : id;
  const rows = await database.query<{ realm_id: string; id: string; revision: string }>(
    `select ${realmId} as realm_id, ${id} as id, revision from ${table}`,
  );
  return rows.map((row) => [`${name} ${row.realm_id} ${row.id}`, row.revision]);
}

function outcomeErrors(changes: readonly ChangeRow[], history: readonly WriteAttempt[]): string[] {
  const unmatched = new Set(changes.flatMap(({ request_id }) => request_id ?? []));
  const complaints: string[] = [];
  for (const { ids, outcome } of history) {
    const committed = ids.filter((id) => unmatched.has(id));
    if (outcome === 'acknowledged' && committed.length !== 1)
      complaints.push(`${ids[0]} was acknowledged and has ${committed.length} commits`);
    if (outcome === 'rejected' && committed.length > 0)
      complaints.push(`${ids[0]} was rejected and has a change`);
    for (const id of ids) unmatched.delete(id);
  }
  return [...complaints, ...[...unmatched].map((id) => `no request was sent for the changes of ${id}`)];
}

/** Writes that follow, in the log of their realm, a write that was sent after they were acknowledged. */
function orderErrors(changes: readonly ChangeRow[], history: readonly WriteAttempt[]): string[] {
  const attempts = new Map(history.flatMap((each) => each.ids.map((id) => [id, each] as const)));
  const complaints: string[] = [];
  let realm = '';
  let latest: WriteAttempt | undefined;
  for (const { realm_id, request_id } of changes) {
    if (realm_id !== realm) latest = undefined;
    realm = realm_id;
    const attempt = attempts.get(request_id ?? '');
    if (!attempt) continue;
    if (latest && attempt.outcome === 'acknowledged' && attempt.to < latest.from)
      complaints.push(
        `${attempt.ids[0]} was acknowledged before ${latest.ids[0]} was sent, and follows it in the log`,
      );
    if (!latest || attempt.from > latest.from) latest = attempt;
  }
  return complaints;
}
