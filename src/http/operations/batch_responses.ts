import type { Uuid } from '../../domain/id.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { openIncludedPresenter, type ShownRecord } from '../pipeline/included_presenter.ts';
import { selfLinks } from '../pipeline/links.ts';
import type { RecordDeps } from '../pipeline/pipeline.ts';
import { etags } from '../pipeline/present.ts';
import { BATCH_RESOURCES, type BatchItem } from './batch_items.ts';
import { readCreated } from './included.ts';

/**
 * Makes the responses to the requests of a committed batch, with the records as they are now; `created`: the IDs of those that it
 * created, in order. The response of a deleted record has no body.
 */
export function openBatchResponses(deps: RecordDeps) {
  const { store } = deps;
  const presenters = new Map(BATCH_RESOURCES.map((resource) => [resource, presenterFor(resource, deps)]));

  async function respond({ method, resource, body }: BatchItem, key: Key): Promise<string> {
    if (method === 'DELETE') return '{"status":204}';
    const [status, input] = method === 'POST' ? ([201, body ?? {}] as const) : ([200, {}] as const);
    const found = await readCreated(store, resource, key, input);
    return `{"status":${status}${presenters.get(resource)?.(status, key, found) ?? ''}}`;
  }

  return async (items: readonly BatchItem[], created: readonly Uuid[]): Promise<string> => {
    const ids = created.values();
    const responses = items.map((item) => {
      const key = item.method === 'POST' ? [...item.ids, ids.next().value] : item.ids;
      return respond(item, key as unknown as Key);
    });
    return `{"responses":[${(await Promise.all(responses)).join()}]}`;
  };
}

/** Makes the members of a response after its status. */
function presenterFor(resource: Resource, deps: RecordDeps) {
  const { baseUrl } = deps;
  const etagOf = etags(baseUrl);
  const locationOf = selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl);
  const present = openIncludedPresenter(resource, deps);
  return (status: 200 | 201, key: Key, found: ShownRecord | undefined): string => {
    const location = status === 201 ? `,"location":"${locationOf(key)}"` : '';
    if (!found) return location;
    return `${location},"etag":${JSON.stringify(etagOf(found.record))},"body":${present(key, found)}`;
  };
}
