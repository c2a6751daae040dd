import type { FieldError } from '../../model/fault.ts';
import { parseUuid, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Resource } from '../../model/resource.ts';
import { includableBelow, RESOURCES } from '../../model/resources.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';
import { collectionPattern, itemPatterns, parameterNames } from '../pipeline/links.ts';
import { openRouter } from '../server/router.ts';

/** A valid request of a batch. */
export interface BatchItem extends Target {
  readonly method: BatchMethod;
  /** Undefined for a DELETE. */
  readonly body: JsonObject | undefined;
  /** Like the header If-Match. */
  readonly ifMatch: string | undefined;
  /** Its place in the body of the batch: `requests.0` for example. */
  readonly item: string;
}

export const BATCH_METHODS = ['POST', 'PUT', 'DELETE'] as const;
type BatchMethod = (typeof BATCH_METHODS)[number];

/** The target of a path: a record, or the collection that a POST adds one to. */
type Target = NonNullable<ReturnType<typeof targetOf>>;

/** The resources that a batch writes: those below a realm. */
export const BATCH_RESOURCES: readonly Resource[] = RESOURCES.filter(({ parent }) => parent !== undefined);

const match = openRouter(
  BATCH_RESOURCES.flatMap((resource) =>
    [collectionPattern(resource), ...itemPatterns(resource)].map((pattern, index) => ({
      pattern,
      resource,
      isCollection: index === 0,
      names: parameterNames(pattern),
    })),
  ),
);

/** Reads `requests` of the body of a batch for a realm: the valid ones, and the errors of the others. */
export function readBatchItems(requests: unknown, realm: Uuid) {
  const most = LIMITS.recordsPerRequestMax;
  if (!Array.isArray(requests))
    return refusedBatch(requests === undefined ? 'is missing' : 'must be an array');
  if (requests.length === 0) return refusedBatch('must not be empty');
  if (requests.length > most) return refusedBatch(`must have at most ${most} entries`);
  const read = requests.map((request, index) => readItem(request, `requests.${index}`, realm));
  const items = read.flatMap((each) => ('item' in each ? [each] : []));
  const records = items.reduce((sum, item) => sum + 1 + includedCount(item), 0);
  if (records > most) return refusedBatch(`must write at most ${most} records, including those in included`);
  return { items, errors: read.flatMap((each) => ('item' in each ? [] : each)) };
}

function refusedBatch(rule: string): { items: readonly BatchItem[]; errors: readonly FieldError[] } {
  return { items: [], errors: [{ field: 'requests', rule }] };
}

/** The records that an item creates below its own. A PUT ignores `included`, as does a resource without such records. */
function includedCount({ method, resource, body }: BatchItem): number {
  const included = method === 'POST' && includableBelow(resource).length > 0 ? body?.included : undefined;
  return Array.isArray(included) ? included.length : 0;
}

/** A request, or its errors. */
function readItem(request: unknown, item: string, realm: Uuid): BatchItem | readonly FieldError[] {
  if (!isJsonObject(request)) return [{ field: item, rule: 'must be a JSON object' }];
  const { method, path, body, if_match: ifMatch } = request;
  const target = typeof path === 'string' ? targetOf(path) : undefined;
  const broken: Readonly<Record<string, string | undefined>> = {
    method: methodRule(method, target),
    path: pathRule(target, realm),
    body: method === 'DELETE' ? undefined : bodyRule(body),
    if_match: conditionRule(ifMatch, method),
  };
  const errors = Object.entries(broken).flatMap(([name, rule]) =>
    rule === undefined ? [] : [{ field: `${item}.${name}`, rule }],
  );
  if (errors.length > 0 || !target) return errors;
  return {
    ...target,
    method: method as BatchMethod,
    body: method === 'DELETE' ? undefined : (body as JsonObject),
    ifMatch: ifMatch as string | undefined,
    item,
  };
}

/** The target of a path; undefined if it is not below a realm, or has an ID that is not a UUID. */
function targetOf(path: string) {
  const found = match(path);
  if (!found) return undefined;
  const { resource, isCollection, names } = found.route;
  const ids = names.map((name) => parseUuid(found.params[name] ?? ''));
  return ids.includes(undefined) ? undefined : { resource, isCollection, ids: ids as readonly Uuid[] };
}

function methodRule(method: unknown, target: Target | undefined): string | undefined {
  const allowed = target ? METHODS_OF[target.isCollection ? 'collection' : 'record'] : BATCH_METHODS;
  return (allowed as readonly unknown[]).includes(method)
    ? undefined
    : `must be one of ${allowed.join(', ')}`;
}

const METHODS_OF = { collection: ['POST'], record: ['PUT', 'DELETE'] } as const;

function pathRule(target: Target | undefined, realm: Uuid): string | undefined {
  if (!target) return 'must be the path of a collection or a record below a realm';
  return target.ids[0] === realm ? undefined : 'must be in the realm of the batch';
}

function bodyRule(body: unknown): string | undefined {
  if (isJsonObject(body)) return undefined;
  return body === undefined ? 'is missing' : 'must be a JSON object';
}

function conditionRule(ifMatch: unknown, method: unknown): string | undefined {
  if (ifMatch === undefined) return undefined;
  if (typeof ifMatch !== 'string') return 'must be a string';
  return method === 'POST' ? 'applies only to PUT and DELETE' : undefined;
}
