import { z } from 'zod';
import { type ChangeOrigin, changeOf } from '../domain/change.ts';
import type { Clock, Revision, Uuid } from '../domain/id.ts';
import type { AnyRecord, Key, Resource } from '../domain/resource.ts';
import type { Insert, PatchWrite } from './store.ts';

/** The origin and revisions of the rows of one write. */
export interface Stamp {
  readonly origin: ChangeOrigin;
  readonly mintRevision: () => Revision;
}

/** The cause of a change; commands have neither a request nor an address. */
interface ChangeSource {
  readonly actor: string;
  readonly requestId?: string;
  readonly address?: string | undefined;
}

/** Reads the clock once for each write. */
export function stampOf(
  { actor, requestId, address }: ChangeSource,
  { now, mintRevision }: Pick<Clock, 'now' | 'mintRevision'>,
): Stamp {
  return { origin: { actor, requestId, address, at: now() }, mintRevision };
}

/** The write of a new record with these members. */
export function draftRecord(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): Insert {
  const record: AnyRecord = {
    ...members,
    id: key.at(-1) as Uuid,
    created_at: origin.at,
    updated_at: origin.at,
    revision: mintRevision(),
  };
  const change = changeOf(resource, 'created', { key, revision: record.revision, members: [] }, origin);
  return { op: 'insert', resource, key, record, change };
}

/** The write of some members of a record; without any, only `updated_at` and the revision change. */
export function draftPatch(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): PatchWrite {
  const patch = { members, revision: mintRevision(), at: origin.at };
  const written = { key, revision: patch.revision, members: Object.keys(members) };
  return { op: 'patch', resource, key, patch, change: changeOf(resource, 'updated', written, origin) };
}

/**
 * The write of a new record with these members and the defaults of the description. Members that break the description
 * are a bug.
 */
export function draftDescribed(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  by: { readonly clock: Clock; readonly actor: string },
): Insert {
  const described = z.object(resource.members).parse(members);
  return draftRecord(resource, key, described, stampOf(by, by.clock));
}
