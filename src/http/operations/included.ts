import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Key, Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import type { KeyedRecord, MaybePromise, RecordWithIncluded, Store } from '../../model/store.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import type { Call, Stage } from '../pipeline/call.ts';
import { recordReplies, type ShownRecord } from '../pipeline/included_presenter.ts';
import { locate, type RecordDeps, refuseWithout } from '../pipeline/pipeline.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { childrenNamed, NEWEST_FIRST } from '../pipeline/query.ts';
import { NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';

/**
 * Answers a lookup with `include` (docs/wire.md#included-records); a lookup without it passes, after one look at its URL.
 * In order: the scopes of the included resources (403), path (404), record (404), the body. No precondition: the revision of
 * the record does not change where an import adds a record below it.
 */
export function includingStages(resource: Resource, deps: RecordDeps): readonly Stage[] {
  const includable = includableBelow(resource);
  if (includable.length === 0) return [];
  const replyTo = recordReplies(resource, deps);
  const checkKey = locate(resource);
  const reply = (call: Call, found: RecordWithIncluded | undefined): Reply =>
    found ? replyTo(call, call.key as Key, found) : NOT_FOUND_REPLY;
  /** Awaits only what an embedded engine does not return at once. */
  const answer = (call: Call, children: readonly Resource[]): MaybePromise<Reply> => {
    const found = deps.store.getIncluding(resource, call.key as Key, children);
    return found instanceof Promise ? found.then((late) => reply(call, late)) : reply(call, found);
  };
  return [
    (call) => {
      const children = childrenNamed(includable, call.request.url);
      if (children.length === 0) return undefined;
      const scopes = children.map(({ scope }) => `${scope}:read`);
      return refuseWithout(call, scopes) ?? checkKey(call) ?? answer(call, children);
    },
  ];
}

/**
 * Reads the records of some resources below those of a page, as serialized items that name their parent
 * (docs/wire.md#included-records). Throws Fault `invalid_query` if there are too many for an answer.
 */
export function openPageIncluding(resource: Resource, deps: RecordDeps) {
  const presenters = new Map(
    includableBelow(resource).map((child) => [child, itemPresenterOf(child, deps, true)]),
  );

  /** The records of a child resource, realm by realm: IDs of users are unique in a realm only. */
  async function itemsOf(child: Resource, parents: readonly KeyedRecord[]): Promise<readonly string[]> {
    const items: string[] = [];
    for (const [realm, own] of Map.groupBy(parents, ({ key }) => key[0])) {
      const values = own.map(({ record }) => record.id);
      const ofParents = { ...PARENTS, member: resource.foreignKey ?? '', values };
      const page = { kind: 'after', after: undefined, limit: LIMITS.includedInPageMax } as const;
      const listing = { filter: [[ofParents]], sort: NEWEST_FIRST, page };
      const found = await deps.store.list(child, [realm], listing);
      for (const { record, key } of found?.items ?? [])
        items.push(presenters.get(child)?.(record, key) ?? '');
      if (found?.hasMore || items.length > LIMITS.includedInPageMax)
        throw new Fault('invalid_query', [{ field: 'include', rule: TOO_MANY_INCLUDED }]);
    }
    return items;
  }

  /** Undefined if the request asks for none. */
  return async ({ included }: Call, parents: readonly KeyedRecord[]): Promise<string | undefined> => {
    if (included.length === 0) return undefined;
    return (await Promise.all(included.map((child) => itemsOf(child, parents)))).flat().join();
  };
}

const PARENTS = { kind: 'one_of', compared: 'identifier' } as const;

const TOO_MANY_INCLUDED = `finds more than ${LIMITS.includedInPageMax} records of one kind below this page: ask for a smaller page`;

/** The resources of the records in `included` of a body. Entries of other types are rejected later. */
export function includedIn(resource: Resource, body: JsonObject | undefined): readonly Resource[] {
  const included = body?.included;
  if (!Array.isArray(included)) return [];
  const types = new Set(included.map((entry) => (Object(entry) as { readonly type?: unknown }).type));
  return includableBelow(resource).filter(({ type }) => types.has(type));
}

export function writeScopes(resources: readonly Resource[]): readonly string[] {
  return resources.map(({ scope }) => `${scope}:write`);
}

/** Reads a record that a request created, as it is now; with the kinds of records below it that the body had in `included`. */
export async function readCreated(
  store: Store,
  resource: Resource,
  key: Key,
  body: JsonObject,
): Promise<ShownRecord | undefined> {
  if (body.included !== undefined && includableBelow(resource).length > 0)
    return await store.getIncluding(resource, key, includedIn(resource, body));
  const record = await store.get(resource, key);
  return record && { record };
}
