import { FAULTS, Fault } from '../domain/fault.ts';
import type { Ambient, Revision } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AnyRecord, type Key, parentKey, type Resource, type Scope } from '../domain/resource.ts';
import type { TraceContext } from '../domain/trace_context.ts';
import { type Draft, draftPatch, draftRecord, type Stamp, stampOf } from './draft.ts';
import { type DirectorySettings, guardsOf, type Makers, openFinisher } from './finishing.ts';
import { type InputVerb, inputReader, type JsonObject, judgeBodyId } from './input.ts';
import type { Memory, Placed, Store, Verdict } from './store.ts';
import { conflict, judge } from './verdict.ts';

/** Who asks for a write. */
export interface Asking {
  readonly actor: string;
  readonly requestId: string;
  /** Where the request came from, as far as that is known. */
  readonly address: string | undefined;
  /** The trace that its caller named. */
  readonly trace?: TraceContext | undefined;
}

/** The revision the caller has seen, if it named one; the write lands only on that one. */
export interface Seen {
  readonly seen: Revision | undefined;
}

/** Makes what is remembered of an answer, for the commit of the record that it tells about. */
export type Remember = (made: Placed) => Memory;

/** The writing verbs, over every resource. Each lands whole, or rejects with a Fault that says which rule was broken. */
export interface Directory {
  /** Rejects with Fault `invalid`, `conflict`, `not_found` (for a parent), `overloaded`. */
  create(resource: Resource, scope: Scope, data: JsonObject, by: Creating): Promise<Created>;
  /** Partial: what `data` does not say stays. Rejects as `create` does, and with `precondition_failed`. */
  update(resource: Resource, key: Key, data: JsonObject, by: Asking & Seen): Promise<AnyRecord>;
  /** Rejects with `not_found`, `precondition_failed`, and `conflict` for what is kept or takes too much along. */
  remove(resource: Resource, key: Key, by: Asking & Seen): Promise<void>;
}

export type Creating = Asking & { readonly remember: Remember | undefined };

/** `remembered`: while this ran, the same request was answered by somebody else. */
export type Created = ({ readonly kind: 'created' } & Placed) | { readonly kind: 'remembered' };

export function openDirectory(
  store: Store,
  makers: Makers,
  settings: DirectorySettings,
  ambient: Ambient,
): Directory {
  const finish = openFinisher(makers, settings);
  const readerOf = inputReaders();

  return {
    async create(resource, scope, data, by) {
      const key = [...scope, ambient.mintId()] as unknown as Key;
      const asked = { verb: 'create', trace: by.trace } as const;
      const members = await finish(resource, key, readerOf(resource, 'create')(data), asked);
      const stamp = stampOf(by, ambient);
      const draft = draftRecord(resource, key, members, stamp);
      const { record } = draft.write;
      const write = { ...draft.write, guards: guardsOf(resource, record, settings) };
      const drafts = [{ ...draft, write }, ...touchesOf(resource, key, stamp)];
      const verdict = await commit(store, drafts, by.remember?.({ key, record }));
      if (verdict.kind === 'remembered') return verdict;
      judge(verdict);
      return { kind: 'created', key, record };
    },

    async update(resource, key, data, by) {
      const input = readerOf(resource, 'update')(data);
      judgeBodyId(resource, key, data);
      const members = await finish(resource, key, input, { verb: 'update', trace: by.trace });
      const stamp = stampOf(by, ambient);
      const draft = draftPatch(resource, key, members, stamp);
      const seen = by.seen === undefined ? {} : { seen: by.seen };
      const write = { ...draft.write, ...seen, guards: guardsOf(resource, members, settings) };
      const verdict = await commit(store, [{ ...draft, write }, ...touchesOf(resource, key, stamp)]);
      judge(verdict);
      return patchedBy(verdict);
    },

    async remove(resource, key, by) {
      const seen = by.seen === undefined ? {} : { seen: by.seen };
      const { kind } = await store.remove({ resource, key, ...seen, ...stampOf(by, ambient) });
      switch (kind) {
        case 'removed':
          return;
        case 'absent':
          throw new Fault('not_found');
        case 'stale':
          throw new Fault('precondition_failed');
        case 'kept':
          throw conflict('data.id', 'this record is kept and cannot be deleted');
        case 'crowded':
          throw conflict('data.id', crowd(await countedBelow(store, resource, key)));
      }
    },
  };
}

/** The readers of what callers say, each made when it is first needed. */
function inputReaders() {
  const readers = new Map<string, ReturnType<typeof inputReader>>();
  return (resource: Resource, verb: InputVerb) => {
    const name = `${verb} ${resource.name}`;
    const reader = readers.get(name) ?? inputReader(resource, verb);
    readers.set(name, reader);
    return reader;
  };
}

/** A record below a user moves the user (contract 2.5); what hangs right under a realm moves nothing. */
function touchesOf({ parent }: Resource, key: Key, stamp: Stamp): readonly Draft[] {
  const above = parentKey(key);
  return parent?.parent && above ? [draftPatch(parent, above, {}, stamp)] : [];
}

function commit(store: Store, drafts: readonly Draft[], memory?: Memory): Promise<Verdict> {
  return store.commit(
    drafts.map(({ write }) => write),
    drafts.map(({ change }) => change),
    memory,
  );
}

/** Writes drafts in one commit. Rejects with Fault `conflict` or `not_found` where the engine refuses them. */
export async function commitDrafts(store: Store, drafts: readonly Draft[]): Promise<void> {
  judge(await commit(store, drafts));
}

function patchedBy(verdict: Verdict): AnyRecord {
  const record = verdict.kind === 'landed' ? verdict.patched?.[0] : undefined;
  if (!record) throw new Error('a patch that landed leaves a record');
  return record;
}

/** How many records would go with this one; undefined where that is not told in time, which changes no answer. */
async function countedBelow(store: Store, resource: Resource, key: Key): Promise<number | undefined> {
  try {
    return await store.countBelow(resource, key);
  } catch (error) {
    if (error instanceof Fault && FAULTS[error.code].status === 503) return undefined;
    throw error;
  }
}

function crowd(count: number | undefined): string {
  const most = LIMITS.cascadeRecordsMax;
  const way = 'authrealm purge removes them';
  // Some may have gone since, and remembered answers count for the bound but are no records.
  return count !== undefined && count > most
    ? `${count} records would go with this one, more than ${most}: ${way}`
    : `more than ${most} records would go with this one: ${way}`;
}
