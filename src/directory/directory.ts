import { z } from 'zod';
import { type Change, type ChangeOrigin, changeOf } from '../domain/change.ts';
import { Fault } from '../domain/fault.ts';
import type { Ambient, Uuid } from '../domain/id.ts';
import type { AnyRecord, Key, Resource } from '../domain/resource.ts';
import type { Store, Write } from './store.ts';

/** A record that is about to be written: finished facts, ready for one commit. */
export interface Draft {
  readonly write: Write;
  readonly change: Change;
}

/**
 * Drafts a new record of any resource from the members a caller gave. Throws Fault `invalid` naming every member that
 * breaks its description; unknown members are dropped.
 */
export function draftRecord(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  from: { readonly ambient: Ambient; readonly actor: string; readonly requestId?: string },
): Draft {
  const parsed = z.object(resource.members).safeParse(members);
  if (!parsed.success) {
    const complaints = parsed.error.issues.map(({ path, message }) => ({
      field: path.join('.'),
      rule: message,
    }));
    throw new Fault('invalid', complaints);
  }
  const at = from.ambient.now();
  const record: AnyRecord = {
    ...parsed.data,
    id: key.at(-1) as Uuid,
    created_at: at,
    updated_at: at,
    revision: from.ambient.mintRevision(),
  };
  const origin: ChangeOrigin = { actor: from.actor, requestId: from.requestId, at };
  const named = Object.keys(parsed.data);
  return {
    write: { op: 'insert', resource, key, record },
    change: changeOf(resource, 'created', { key, revision: record.revision, members: named }, origin),
  };
}

/** Writes drafts in one commit. Throws Fault `conflict` or `not_found` where the engine's verdict is not `landed`. */
export async function commitDrafts(store: Store, drafts: readonly Draft[]): Promise<void> {
  const verdict = await store.commit(
    drafts.map(({ write }) => write),
    drafts.map(({ change }) => change),
  );
  switch (verdict.kind) {
    case 'landed':
      return;
    case 'absent':
      throw new Fault('not_found');
    case 'taken':
      throw new Fault(
        'conflict',
        verdict.members.map((field) => ({ field, rule: 'must be unique in the realm' })),
      );
    case 'dangling':
      throw new Fault('conflict', [{ field: verdict.member, rule: 'must name a record of the realm' }]);
  }
}
