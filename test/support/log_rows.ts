import { eventNumber } from '../../src/model/log/event.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { POSTGRES } from '../../src/records/store/postgres/dialect.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';

/** The log as SQL reads it, independent of how it is stored. */

export type EngineName = 'sqlite' | 'postgres';

const EVENTS = RESOURCES.flatMap(({ name }) =>
  ['created', 'updated', 'deleted', 'erased'].map((verb) => `${name}.${verb}`),
);

/**
 * Begins a statement with the common table expression `change`: the entries of all realms with their IDs, events, revisions
 * and members as texts, and with what the last entry of a run holds.
 */
export function withChanges(engine: EngineName): string {
  const isSqlite = engine === 'sqlite';
  const id = (column: string) => idText(engine, column);
  const realm = realmText(engine, 'numbered_entry');
  const hex = isSqlite ? 'lower(hex(revision))' : `encode(revision, 'hex')`;
  const ofRun = (column: string) => `first_value(${column}) over in_run`;
  const event = EVENTS.map((name) => `when ${eventNumber(name)} then '${name}'`).join(' ');
  const isUpdate = `event in (${EVENTS.filter((name) => name.endsWith('.updated')).map(eventNumber)})`;
  return `with numbered_entry as (
      select *, count(at) over (partition by realm_id order by seq desc) as run from log_entry),
    change as (
      select ${realm} as realm_id, realm_id as stored_realm_id, seq, case event ${event} else 'unknown' end as event,
        ${id(ofRun('user_id'))} as user_id,
        coalesce(${id(`coalesce(record_id, ${ofRun('user_id')})`)}, ${realm}) as record_id, ${hex} as revision,
        coalesce(members, case when ${isUpdate} then 'updated_at' else '' end) as members, ${ofRun('at')} as at,
        ${ofRun('actor')} as actor, ${ofRun('request_id')} as request_id, ${ofRun('address')} as address,
        detail, personal, tag
      from numbered_entry window in_run as (partition by realm_id, run order by seq desc))`;
}

/** A condition on `log_entry`, `user_salt` or a table of records below realms, with a realm as its parameter. */
export function ofRealm(engine: EngineName): string {
  return `realm_id = ${storedRealm(engine, '?')}`;
}

/** The same with a user. */
export function ofUser(engine: EngineName): string {
  return `user_id = ${storedId(engine, '?')}`;
}

/** A condition on a table of records with their ID as its parameter. */
export function ofRecord(engine: EngineName): string {
  return `id = ${storedId(engine, '?')}`;
}

/** SQL for an ID as the tables of records and the log store it, from its text. */
export function storedId(engine: EngineName, text: string): string {
  return DIALECTS[engine].id(text);
}

/** SQL for a realm as those tables store it, from the text of its ID. */
export function storedRealm(engine: EngineName, text: string): string {
  return DIALECTS[engine].realm(text);
}

/** SQL for the ID of the realm of a row in such a table. */
export function realmText(engine: EngineName, table: string): string {
  return engine === 'sqlite' ? SQLITE.foundRows.id(table) : `${table}.realm_id`;
}

/** SQL for the text of an ID in a table of records or in the log. */
export function idText(engine: EngineName, column: string): string {
  return engine === 'sqlite' ? `nullif(${uuidTextOf(column)}, '----')` : column;
}

const DIALECTS = { sqlite: SQLITE, postgres: POSTGRES };

const COPIED = 'event, record_id, revision, members, user_id, at, actor, request_id';

/** Appends a copy of the last entry of a realm without a tag. Parameter: the realm. */
export function appendUntagged(engine: EngineName): string {
  return `insert into log_entry (realm_id, seq, ${COPIED})
    select realm_id, seq + 1, ${COPIED} from log_entry where ${ofRealm(engine)} order by seq desc limit 1`;
}

/** SQL for the text of an ID that is stored as bytes. */
function uuidTextOf(column: string): string {
  const digits = [
    [1, 8],
    [9, 4],
    [13, 4],
    [17, 4],
    [21, 12],
  ].map(([from, count]) => `substr(hex(${column}), ${from}, ${count})`);
  return `lower(${digits.join(" || '-' || ")})`;
}
