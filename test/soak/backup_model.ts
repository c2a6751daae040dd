import { Database } from 'bun:sqlite';
import { oidcProfileInfo, user } from '../../src/model/resources.ts';
import { findInconsistencies } from '../support/consistency.ts';
import { idText, withChanges } from '../support/log_rows.ts';
import type { LoadRecord, WriteOperation } from './write_load.ts';

/** A row of the change log. */
interface ChangeRow {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly record_id: string;
  readonly revision: string;
  readonly request_id: string | null;
}

/** The changes and records of a database, as the model compares them. */
export interface DatabaseContent {
  readonly changes: readonly ChangeRow[];
  /** The compared members of each record, by ID. */
  readonly records: ReadonlyMap<string, string>;
}

/** Reads users, links and changes. */
export function readContent(path: string): DatabaseContent {
  const db = new Database(path, { readwrite: true });
  try {
    const query = <R>(sql: string): R[] => {
      const statement = db.prepare<R, []>(sql);
      const rows = statement.all();
      statement.finalize();
      return rows;
    };
    const users = query<{ id: string; name: string; email: string }>(
      `select ${idText('sqlite', 'id')} as id, name, email from user_info`,
    );
    const links = query<{ id: string; user_id: string; subject: string }>(
      `select ${idText('sqlite', 'id')} as id, ${idText('sqlite', 'user_id')} as user_id, subject
        from oidc_profile_info`,
    );
    return {
      changes: query<ChangeRow>(
        `${withChanges('sqlite')} select realm_id, seq, event, record_id, revision, request_id from change
         order by realm_id, seq`,
      ),
      records: new Map([
        ...users.map(({ id, name, email }) => [id, userValue(name, email)] as const),
        ...links.map((row) => [row.id, linkValue(row.user_id, row.subject)] as const),
      ]),
    };
  } finally {
    db.close(true);
  }
}

const userValue = (name: string, email: string): string => JSON.stringify([name, email]);
const linkValue = (owner: string, subject: string): string => JSON.stringify([owner, subject]);

/** The state that a restored backup is checked against. */
export interface Expected {
  /** The content before the first write. */
  readonly start: DatabaseContent;
  /** The final content, with the whole change log. */
  readonly end: DatabaseContent;
  readonly writes: LoadRecord;
  /** Number of acknowledged writes when the backup began. */
  readonly acknowledgedBefore: number;
}

/**
 * Errors of a restored backup, in sentences. In each realm its log must be a prefix of the final log and contain every write
 * acknowledged before the backup; and its records must be those that these writes give in their order.
 */
export function backupErrors(path: string, expected: Expected): readonly string[] {
  const content = readContent(path);
  const { end, writes, acknowledgedBefore } = expected;
  const finalChanges = new Map(
    end.changes.map((change) => [`${change.realm_id} ${change.seq}`, JSON.stringify(change)]),
  );
  const invented = content.changes.filter(
    (change) => finalChanges.get(`${change.realm_id} ${change.seq}`) !== JSON.stringify(change),
  );
  const requests = new Set(content.changes.map(({ request_id }) => request_id));
  const lost = writes.acknowledged.slice(0, acknowledgedBefore).filter((id) => !requests.has(id));
  const expectedRecords = replay(expected, content.changes);
  return [
    ...findInconsistencies(path),
    ...invented.map(({ realm_id, seq }) => `change ${seq} of ${realm_id} differs from the final log`),
    ...lost.map((id) => `${id} was acknowledged before the backup and is missing`),
    ...differences(expectedRecords, content.records),
  ];
}

/** Applies the writes of these changes, in order, to the initial records. */
function replay({ start, writes }: Expected, changes: readonly ChangeRow[]): ReadonlyMap<string, string> {
  const records = new Map(start.records);
  const done = new Set<string>();
  for (const change of changes) {
    const { request_id: id } = change;
    const op = id === null ? undefined : writes.operations.get(id);
    // The first change of a write is that of its own record; the others follow from it.
    if (id === null || !op || done.has(id)) continue;
    done.add(id);
    apply(records, op, change);
  }
  return records;
}

function apply(records: Map<string, string>, op: WriteOperation, { record_id, event }: ChangeRow): void {
  switch (op.kind) {
    case 'create user':
      if (event === `${user.name}.created`) records.set(record_id, userValue(op.name, op.email));
      return;
    case 'create link':
      if (event === `${oidcProfileInfo.name}.created`) records.set(record_id, linkValue(op.user, op.subject));
      return;
    case 'rename': {
      const [, email] = JSON.parse(records.get(op.user) ?? '[]') as string[];
      records.set(op.user, userValue(op.name, email ?? ''));
      return;
    }
    case 'remove link':
      records.delete(op.link);
      return;
    case 'remove user':
      removeUserRecords(records, op.user);
  }
}

/** Removes a user with its links. */
export function removeUserRecords(records: Map<string, string>, id: string): void {
  records.delete(id);
  for (const [link, value] of records) if (JSON.parse(value)[0] === id) records.delete(link);
}

function differences(
  expected: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
): readonly string[] {
  const wrong = [...found].filter(([id, value]) => expected.get(id) !== value);
  const missing = [...expected.keys()].filter((id) => !found.has(id));
  return [
    ...wrong.map(([id]) => `${id} differs from the model`),
    ...missing.map((id) => `${id} is missing in the backup`),
  ];
}
