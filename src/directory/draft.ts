import { z } from 'zod';
import { type Change, type ChangeOrigin, changeOf } from '../domain/change.ts';
import type { Ambient, Revision, Uuid } from '../domain/id.ts';
import type { AnyRecord, Key, Resource } from '../domain/resource.ts';
import type { Write } from './store.ts';

/** A row that is about to be written, and the change it leaves: finished facts, ready for one commit. */
export interface Draft<W extends Write = Write> {
  readonly write: W;
  readonly change: Change;
}

type Insert = Extract<Write, { op: 'insert' }>;
type Patching = Extract<Write, { op: 'patch' }>;

/** What every row of one write has from it. */
export interface Stamp {
  readonly origin: ChangeOrigin;
  readonly mintRevision: () => Revision;
}

/** Who causes a change; a program of ours has neither a request nor an address. */
interface Caused {
  readonly actor: string;
  readonly requestId?: string;
  readonly address?: string | undefined;
}

/** Who causes a change, and when: the clock is read once for each write. */
export function stampOf(
  { actor, requestId, address }: Caused,
  { now, mintRevision }: Pick<Ambient, 'now' | 'mintRevision'>,
): Stamp {
  return { origin: { actor, requestId, address, at: now() }, mintRevision };
}

/** A new record of finished members. */
export function draftRecord(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): Draft<Insert> {
  const record: AnyRecord = {
    ...members,
    id: key.at(-1) as Uuid,
    created_at: origin.at,
    updated_at: origin.at,
    revision: mintRevision(),
  };
  const change = changeOf(resource, 'created', { key, revision: record.revision, members: [] }, origin);
  return { write: { op: 'insert', resource, key, record }, change };
}

/** Some members of a record that become something else; with none, only `updated_at` and the revision move. */
export function draftPatch(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): Draft<Patching> {
  const patch = { members, revision: mintRevision(), at: origin.at };
  const moved = { key, revision: patch.revision, members: Object.keys(members) };
  return {
    write: { op: 'patch', resource, key, patch },
    change: changeOf(resource, 'updated', moved, origin),
  };
}

/**
 * A new record of the members that a program gives, with the defaults of the description for the others. What breaks
 * the description is a bug.
 */
export function draftDescribed(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  by: { readonly ambient: Ambient; readonly actor: string },
): Draft<Insert> {
  const described = z.object(resource.members).parse(members);
  return draftRecord(resource, key, described, stampOf(by, by.ambient));
}
