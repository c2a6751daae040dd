import type { IncludedRecords, MaybePromise, RecordWithIncluded, Store } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ancestry, type Key, type Resource } from '../../domain/resource.ts';
import { includableBelow } from '../../domain/resources.ts';
import { parseJson } from '../pipeline/body.ts';
import { type Call, type CallHandler, runStages, type Stage } from '../pipeline/call.ts';
import { collectionLinks } from '../pipeline/links.ts';
import { linkAfter } from '../pipeline/paging.ts';
import { locate, permit, RECORD_CACHING, type RecordDeps } from '../pipeline/pipeline.ts';
import { etags, includingPresenterOf, itemPresenterOf } from '../pipeline/present.ts';
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
  const includable = includableBelow(resource);
  if (includable.length === 0) return [];
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
      const { url } = call.request;
      if (!url.includes('?')) return undefined;
      const names = readInclude(url);
      const children = includable.filter(({ includedAs = '' }) => names.includes(includedAs));
      return children.length === 0 ? undefined : handlerFor(children)(call);
    },
  ];
}

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

/** Checks the write scopes of the records in `included` of a create, whose body was read (403). */
export function permitIncluded(resource: Resource): readonly Stage[] {
  if (includableBelow(resource).length === 0) return [];
  const permits = new Map(includableBelow(resource).map((child) => [child, permit(`${child.scope}:write`)]));
  return [
    (call) => {
      for (const child of includedIn(resource, tryParse(call.body ?? ''))) {
        const refused = permits.get(child)?.(call);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },
  ];
}

/** The resources of the records in `included` of a body. Entries of other types are rejected later. */
export function includedIn(resource: Resource, body: unknown): readonly Resource[] {
  const { included } = Object(body) as { readonly included?: unknown };
  if (!Array.isArray(included)) return [];
  const types = new Set(included.map((entry) => (Object(entry) as { readonly type?: unknown }).type));
  return includableBelow(resource).filter(({ type }) => types.has(type));
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

/** Serializes a record with records below it. */
export function openIncludedPresenter(
  resource: Resource,
  { baseUrl, installation }: Omit<IncludedDeps, 'store'>,
): (key: Key, found: RecordWithIncluded) => string {
  const presentRecord = includingPresenterOf(resource, baseUrl, installation);
  const children = new Map(
    includableBelow(resource).map((child) => [
      child,
      {
        presentItem: itemPresenterOf(child, { baseUrl, installation, includesParent: false }),
        urlOf: collectionLinks(ancestry(child), baseUrl),
      },
    ]),
  );
  return (key, { record, included }) => {
    const items: string[] = [];
    const more: Record<string, string> = {};
    for (const { resource: child, records, hasMore } of included) {
      const known = children.get(child);
      if (!known) throw new Error(`${child.name} cannot be included`);
      for (const each of records) items.push(known.presentItem(each, [...key, each.id]));
      if (hasMore) more[child.includedAs ?? ''] = restOf(known.urlOf(key), records);
    }
    return presentRecord(record, key, { included: items.join(), more });
  };
}

/** The URL of the list page that continues after the included records. */
function restOf(url: string, records: IncludedRecords['records']): string {
  const last = records.at(-1);
  const position = last && { at: last.created_at, id: last.id };
  return linkAfter(url, LIMITS.includedRecordsMax, position, NEWEST_FIRST);
}
