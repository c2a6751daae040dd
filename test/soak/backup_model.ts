import { Database } from 'bun:sqlite';
import { oidcProfileInfo, user } from '../../src/domain/resources.ts';
import { findInconsistencies } from '../support/consistency.ts';
import type { Op, Told } from './write_load.ts';

/** A place in the log of a realm, and whose request it was. */
interface Place {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly record_id: string;
  readonly revision: string;
  readonly request_id: string | null;
}

/** What is in a database, as a model has it. */
export interface Held {
  readonly places: readonly Place[];
  /** What each record says, by its identifier. */
  readonly records: ReadonlyMap<string, string>;
}

/** Reads users and links, and the log. */
export function heldIn(path: string): Held {
  const db = new Database(path, { readwrite: true });
  try {
    const ask = <R>(sql: string): R[] => {
      const statement = db.prepare<R, []>(sql);
      const rows = statement.all();
      statement.finalize();
      return rows;
    };
    const users = ask<{ id: string; name: string; email: string }>('select id, name, email from user_info');
    const links = ask<{ id: string; user_id: string; subject: string }>(
      'select id, user_id, subject from oidc_profile_info',
    );
    return {
      places: ask<Place>(
        'select realm_id, seq, event, record_id, revision, request_id from change order by realm_id, seq',
      ),
      records: new Map([
        ...users.map(({ id, name, email }) => [id, userSays(name, email)] as const),
        ...links.map((row) => [row.id, linkSays(row.user_id, row.subject)] as const),
      ]),
    };
  } finally {
    db.close(true);
  }
}

const userSays = (name: string, email: string): string => JSON.stringify([name, email]);
const linkSays = (owner: string, subject: string): string => JSON.stringify([owner, subject]);

/** What a restored backup is held against. */
export interface Expected {
  /** What was there before anybody wrote. */
  readonly start: Held;
  /** The log in the end: the order in which everything happened. */
  readonly end: Held;
  readonly told: Told;
  /** How many acknowledgements had come when the backup began. */
  readonly acknowledgedBefore: number;
}

/**
 * What is wrong with a restored backup, in sentences. Its log is the beginning of the log in the end, of each realm; every
 * write that was acknowledged before is in it; and its records are those that these writes make, one after the other.
 */
export function complaintsAbout(path: string, expected: Expected): readonly string[] {
  const held = heldIn(path);
  const { end, told, acknowledgedBefore } = expected;
  const later = new Map(end.places.map((place) => [`${place.realm_id} ${place.seq}`, JSON.stringify(place)]));
  const invented = held.places.filter(
    (place) => later.get(`${place.realm_id} ${place.seq}`) !== JSON.stringify(place),
  );
  const requests = new Set(held.places.map(({ request_id }) => request_id));
  const lost = told.acknowledged.slice(0, acknowledgedBefore).filter((id) => !requests.has(id));
  const modelled = replay(expected, held.places);
  return [
    ...findInconsistencies(path),
    ...invented.map(({ realm_id, seq }) => `place ${seq} of ${realm_id} is not what happened there`),
    ...lost.map((id) => `${id} was acknowledged before the backup and is not in it`),
    ...differences(modelled, held.records),
  ];
}

/** The records that the writes of these places make, applied in their order to what was there before. */
function replay({ start, told }: Expected, places: readonly Place[]): ReadonlyMap<string, string> {
  const records = new Map(start.records);
  const done = new Set<string>();
  for (const place of places) {
    const { request_id: id } = place;
    const op = id === null ? undefined : told.asked.get(id);
    // The first change of a creation is the record's own; what else a write changed follows from it.
    if (id === null || !op || done.has(id)) continue;
    done.add(id);
    apply(records, op, place);
  }
  return records;
}

function apply(records: Map<string, string>, op: Op, { record_id, event }: Place): void {
  switch (op.does) {
    case 'create user':
      if (event === `${user.name}.created`) records.set(record_id, userSays(op.name, op.email));
      return;
    case 'create link':
      if (event === `${oidcProfileInfo.name}.created`) records.set(record_id, linkSays(op.user, op.subject));
      return;
    case 'rename': {
      const [, email] = JSON.parse(records.get(op.user) ?? '[]') as string[];
      records.set(op.user, userSays(op.name, email ?? ''));
      return;
    }
    case 'remove link':
      records.delete(op.link);
      return;
    case 'remove user':
      forget(records, op.user);
  }
}

/** A user with its links. */
export function forget(records: Map<string, string>, id: string): void {
  records.delete(id);
  for (const [link, says] of records) if (JSON.parse(says)[0] === id) records.delete(link);
}

function differences(
  expected: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
): readonly string[] {
  const wrong = [...found].filter(([id, says]) => expected.get(id) !== says);
  const missing = [...expected.keys()].filter((id) => !found.has(id));
  return [
    ...wrong.map(([id]) => `${id} is not what the model has`),
    ...missing.map((id) => `${id} is in the model and not in the backup`),
  ];
}
