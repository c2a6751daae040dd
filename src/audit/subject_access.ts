import type { Store } from '../directory/store.ts';
import { type AuditContext, createAuditEntry } from '../domain/audit_entry.ts';
import type { Person } from './log_keys.ts';
import { entriesOf, recordsOf, toldOf } from './person_erasure.ts';
import type { LogStore } from './port.ts';
import type { LogReading, ReadableEntry } from './reading.ts';

export interface SubjectAccessRooms {
  readonly records: Pick<Store, 'get' | 'list'>;
  readonly log: Pick<LogStore, 'note'>;
  readonly reading: LogReading;
}

/** A piece of what is held about a user, ready to be shown to that person. */
export type Held =
  | { readonly kind: 'record'; readonly record: Readonly<Record<string, unknown>> }
  | { readonly kind: 'log'; readonly entry: ReadableEntry };

/**
 * Everything held about one user: its record and those below it, then what the log tells of it. Password hashes and
 * remembered answers are held, too, and told to nobody. That it was asked for is logged before anything is told.
 */
export async function* subjectAccess(
  { records, log, reading }: SubjectAccessRooms,
  person: Person,
  auditContext: AuditContext,
): AsyncGenerator<Held> {
  await log.note([
    createAuditEntry('user.told', { ...person, object: person.user, detail: {} }, auditContext),
  ]);
  for await (const held of recordsOf(records, person)) yield { kind: 'record', record: toldOf(held) };
  for (const which of ['realm', 'installation'] as const) {
    for await (const entry of entriesOf(reading, person, which)) yield { kind: 'log', entry };
  }
}
