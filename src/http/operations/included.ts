import type { KeyedRecord, MaybePromise, RecordWithIncluded, Store } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import type { JsonObject } from '../../domain/json_object.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { includableBelow } from '../../domain/resources.ts';
import { parseJson } from '../pipeline/body.ts';
import { type Call, type CallHandler, runStages, type Stage } from '../pipeline/call.ts';
import { openIncludedPresenter, type ShownRecord } from '../pipeline/included_presenter.ts';
import { locate, permit, RECORD_CACHING, type RecordDeps } from '../pipeline/pipeline.ts';
import { etags, itemPresenterOf } from '../pipeline/present.ts';
import { NEWEST_FIRST, readInclude } from '../pipeline/query.ts';
import { faultReply, JSON_TYPE, REQUEST_ID, type Reply } from '../server/reply.ts';

interface IncludedDeps extends Pick<RecordDeps, 'baseUrl' | 'installation'> {
  readonly store: Pick<Store, 'getIncluding'>;
}

const NOT_FOUND = faultReply('not_found');

/**
 * Answers a lookup with `include` (docs/wire.md#included-records); a lookup without it passes, after one look at its URL.
 * The stages for each set of resources: their scopes (403), path (404), record (404), the body. No precondition: the
 * revision of the record does not change where an import adds a record below it.
 */
export function includingStages(resource: Resource, deps: IncludedDeps): readonly Stage[] {
  if (includableBelow(resource).length === 0) return [];
  const respond = openRespond(resource, deps);
  const handlers = new Map<string, CallHandler>();

  function handlerFor(children: readonly Resource[]): CallHandler {
    const name = children.map(({ includedAs }) => includedAs).join();
    let handler = handlers.get(name);
    if (!handler) {
      const scopes = children.map(({ scope }) => permit(`${scope}:read`));
      handler = runStages([...scopes, locate(resource), (call) => respond(call, children)]);
      handlers.set(name, handler);
    }
    return handler;
  }

  return [
    (call) => {
      const children = childrenNamed(resource, call.request.url);
      return children.length === 0 ? undefined : handlerFor(children)(call);
    },
  ];
}

/** The resources below `resource` that the `include` of a URL names. */
export function childrenNamed(resource: Resource, url: string): readonly Resource[] {
  const includable = url.includes('?') ? includableBelow(resource) : [];
  if (includable.length === 0) return [];
  const names = readInclude(url);
  return includable.filter(({ includedAs = '' }) => names.includes(includedAs));
}

/** Checks the scopes of the records below that a request reads or writes (403). */
function permitBelow(
  resource: Resource,
  right: 'read' | 'write',
  childrenOf: (call: Call) => readonly Resource[],
): readonly Stage[] {
  const permits = new Map(
    includableBelow(resource).map((child) => [child, permit(`${child.scope}:${right}`)]),
  );
  if (permits.size === 0) return [];
  return [
    (call) => {
      for (const child of childrenOf(call)) {
        const refused = permits.get(child)?.(call);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },
  ];
}

/** Checks the read scopes of the records that a page is to include. */
export function permitIncludedInPage(resource: Resource): readonly Stage[] {
  return permitBelow(resource, 'read', ({ request }) => childrenNamed(resource, request.url));
}

/** Checks the write scopes of the records in `included` of a create, whose body was read. */
export function permitIncluded(resource: Resource): readonly Stage[] {
  return permitBelow(resource, 'write', ({ body = '' }) => includedIn(resource, tryParse(body)));
}

/**
 * Reads the records of some resources below those of a page, as serialized items that name their parent
 * (docs/wire.md#included-records). Throws Fault `invalid_query` if there are too many for an answer.
 */
export function openPageIncluding(
  resource: Resource,
  deps: IncludedDeps & { readonly store: Pick<Store, 'list'> },
) {
  const presenters = new Map(
    includableBelow(resource).map((child) => [
      child,
      itemPresenterOf(child, { ...deps, includesParent: true }),
    ]),
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

  /** Undefined if the URL of the request names none to include. */
  return ({ request }: Call, parents: readonly KeyedRecord[]): Promise<string> | undefined => {
    const children = childrenNamed(resource, request.url);
    if (children.length === 0) return undefined;
    return Promise.all(children.map((child) => itemsOf(child, parents))).then((all) => all.flat().join());
  };
}

const PARENTS = { kind: 'one_of', compared: 'identifier' } as const;

const TOO_MANY_INCLUDED = `finds more than ${LIMITS.includedInPageMax} records of one kind below this page: ask for a smaller page`;

function openRespond(resource: Resource, deps: IncludedDeps) {
  const { store, baseUrl } = deps;
  const present = openIncludedPresenter(resource, deps);
  const etagOf = etags(baseUrl);

  function reply({ requestId, key }: Call, found: RecordWithIncluded | undefined): Reply {
    if (!found) return NOT_FOUND;
    const headers = {
      'Content-Type': JSON_TYPE,
      ETag: etagOf(found.record),
      'Cache-Control': RECORD_CACHING,
      [REQUEST_ID]: requestId,
    };
    return { status: 200, headers, body: present(key as Key, found) };
  }

  return (call: Call, children: readonly Resource[]): MaybePromise<Reply> => {
    const found = store.getIncluding(resource, call.key as Key, children);
    return found instanceof Promise ? found.then((later) => reply(call, later)) : reply(call, found);
  };
}

/** The resources of the records in `included` of a body. Entries of other types are rejected later. */
export function includedIn(resource: Resource, body: unknown): readonly Resource[] {
  const { included } = Object(body) as { readonly included?: unknown };
  if (!Array.isArray(included)) return [];
  const types = new Set(included.map((entry) => (Object(entry) as { readonly type?: unknown }).type));
  return includableBelow(resource).filter(({ type }) => types.has(type));
}

/** Reads a record that a request created, as it is now; with the kinds of records below it that the body had in `included`. */
export async function readCreated(
  store: Pick<Store, 'get' | 'getIncluding'>,
  resource: Resource,
  key: Key,
  body: JsonObject,
): Promise<ShownRecord | undefined> {
  if (body.included !== undefined && includableBelow(resource).length > 0)
    return await store.getIncluding(resource, key, includedIn(resource, body));
  const record = await store.get(resource, key);
  return record && { record };
}

/** The value of a JSON text; undefined for any other. */
export function tryParse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
