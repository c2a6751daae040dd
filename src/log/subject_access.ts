import { type AuditContext, createAuditEntry } from '../model/log/audit_entry.ts';
import type { Store } from '../model/store.ts';
import type { Person } from './keys.ts';
import { exportedRecord, userEntries, userRecords } from './person_erasure.ts';
import type { LogReading, ReadableEntry } from './reading.ts';
import type { LogStore } from './store/reading.ts';

export interface SubjectAccessDeps {
  readonly records: Pick<Store, 'get' | 'list'>;
  readonly log: Pick<LogStore, 'append'>;
  readonly reading: LogReading;
}

/** A record or log entry about a user, for a subject access request. */
export type SubjectAccessItem =
  | { readonly kind: 'record'; readonly record: Readonly<Record<string, unknown>> }
  | { readonly kind: 'log'; readonly entry: ReadableEntry };

/**
 * All data about one user: its record, those below it, and its log entries. Password hashes are
 * left out. The request is logged before anything is returned.
 */
export async function* subjectAccess(
  { records, log, reading }: SubjectAccessDeps,
  person: Person,
  auditContext: AuditContext,
): AsyncGenerator<SubjectAccessItem> {
  await log.append([
    createAuditEntry('user.told', { ...person, object: person.user, detail: {} }, auditContext),
  ]);
  for await (const owned of userRecords(records, person))
    yield { kind: 'record', record: exportedRecord(owned) };
  for (const which of ['realm', 'installation'] as const) {
    for await (const entry of userEntries(reading, person, which)) yield { kind: 'log', entry };
  }
}
