import type { PreparedRequest } from '../../directory/preparation.ts';
import type { RecordWithIncluded, Store } from '../../directory/store.ts';
import type { AnyRecord, Key, Resource } from '../../domain/resource.ts';
import { includableBelow, resourceNamed } from '../../domain/resources.ts';
import { selfLinks } from '../pipeline/links.ts';
import type { RecordDeps } from '../pipeline/pipeline.ts';
import { etags, presenterOf } from '../pipeline/present.ts';
import { BATCH_RESOURCES, type BatchItem } from './batch_items.ts';
import { openIncludedPresenter } from './included.ts';

/**
 * The response to one request of a batch without its record. It holds no personal value, because an idempotency record
 * belongs to at most one user, and a batch may be about many.
 */
interface OutlinedResponse {
  readonly status: 200 | 201 | 204;
  /** The name of the resource. */
  readonly resource: string;
  readonly key: Key;
  /** The names of the resources created below it; undefined if its request had no `included`. */
  readonly included: readonly string[] | undefined;
}

const STATUS = { POST: 201, PUT: 200, DELETE: 204 } as const;

/** The outline of the responses, as JSON: the part of the answer that an idempotency record stores. */
export function outlineOf(items: readonly BatchItem[], prepared: readonly PreparedRequest[]): string {
  const responses = items.map(({ method }, index): OutlinedResponse => {
    const { resource, key, included } = prepared[index] as PreparedRequest;
    const kinds = included?.filter(({ records }) => records.length > 0);
    return {
      ...{ status: STATUS[method], resource: resource.name, key },
      included: kinds?.map(({ resource: child }) => child.name),
    };
  });
  return JSON.stringify(responses);
}

type ResponseDeps = Pick<RecordDeps, 'baseUrl' | 'installation'> & {
  readonly store: Pick<Store, 'get' | 'getIncluding'>;
};

/** Completes an outline with the records as they are now. The response of a deleted record has no body. */
export function openBatchResponses(deps: ResponseDeps): (outline: string) => Promise<string> {
  const { store } = deps;
  const presenters = new Map(
    BATCH_RESOURCES.map((resource) => [resource.name, presenterFor(resource, deps)]),
  );

  async function respond({ status, resource: name, key, included }: OutlinedResponse): Promise<string> {
    const resource = resourceNamed(name);
    const present = presenters.get(name);
    if (status === 204 || !present) return JSON.stringify({ status });
    const children = includableBelow(resource).filter((child) => included?.includes(child.name));
    const found = included
      ? await store.getIncluding(resource, key, children)
      : await only(store.get(resource, key));
    return `{"status":${status}${present(status, key, found)}}`;
  }

  return async (outline) => {
    const responses = JSON.parse(outline) as readonly OutlinedResponse[];
    return `{"responses":[${(await Promise.all(responses.map(respond))).join()}]}`;
  };
}

/** A record, with records below it if its request had any. */
type Found = { readonly record: AnyRecord } & Partial<Pick<RecordWithIncluded, 'included'>>;

async function only(
  reading: AnyRecord | undefined | Promise<AnyRecord | undefined>,
): Promise<Found | undefined> {
  const record = await reading;
  return record && { record };
}

/** Makes the members of a response after its status. */
function presenterFor(resource: Resource, deps: ResponseDeps) {
  const { baseUrl, installation } = deps;
  const etagOf = etags(baseUrl);
  const locationOf = selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl);
  const present = presenterOf(resource, baseUrl, installation);
  const presentIncluding = openIncludedPresenter(resource, deps);
  return (status: 200 | 201, key: Key, found: Found | undefined): string => {
    const location = status === 201 ? `,"location":"${locationOf(key)}"` : '';
    if (!found) return location;
    const { record, included } = found;
    const body = included ? presentIncluding(key, { record, included }) : present(record, key);
    return `${location},"etag":${JSON.stringify(etagOf(record))},"body":${body}`;
  };
}
