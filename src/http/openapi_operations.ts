import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import type { FaultCode } from '../domain/fault.ts';
import type { Resource } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';
import { everywhereSchema, everywhereWords } from './everywhere.ts';
import {
  collectionPattern,
  everywherePattern,
  findingPattern,
  itemPatterns,
  searchPattern,
} from './links.ts';
import { filterExample, requestExample } from './openapi_examples.ts';
import {
  findingWords,
  findParameters,
  headersNamed,
  linkParameters,
  listParameters,
  pathParameters,
  type RequestHeader,
} from './openapi_parameters.ts';
import { ALWAYS, HEADERS, header, OURS } from './openapi_responses.ts';
import {
  everywhereFoundSchema,
  foundSchema,
  listSchema,
  recordSchema,
  requestSchema,
  searchedSchema,
  searchSchema,
} from './openapi_schemas.ts';
import type { DocumentContext } from './operation.ts';
import { isKept, isRefusable } from './refusable.ts';
import type { Method } from './router.ts';

/** One verb over every resource that has it. */
interface Verb {
  readonly name: string;
  readonly method: Method;
  readonly right: 'read' | 'write';
  summary(resource: Resource): string;
  patterns(resource: Resource): readonly string[];
  /** The family does not have it. */
  isOurs(resource: Resource): boolean;
  query?(resource: Resource): z.ZodObject;
  readonly headers?: readonly RequestHeader[];
  body?(resource: Resource): { readonly schema: z.ZodType; readonly example: unknown };
  success(resource: Resource, writing: DocumentContext): ZodOpenApiResponsesObject;
  faults(resource: Resource): readonly FaultCode[];
}

export const ASKED: readonly FaultCode[] = [
  'unauthenticated',
  'insufficient_scope',
  'rate_limited',
  'internal',
  'overloaded',
  'unavailable',
];
/** What may be wrong with a body before anything is done with what it says. */
export const SENT: readonly FaultCode[] = [
  'malformed',
  'invalid',
  'request_timeout',
  'body_too_large',
  'media_type_unknown',
];

const never = () => false;
const always = () => true;
const belowSomething = ({ parent }: Resource): readonly FaultCode[] => (parent ? ['not_found'] : []);

const VERBS: readonly Verb[] = [
  {
    name: 'list',
    method: 'GET',
    right: 'read',
    summary: ({ name }) => `List ${name} records, the newest first.`,
    patterns: (resource) => [collectionPattern(resource)],
    isOurs: never,
    query: listParameters,
    success: (resource, { examples, items }) => ({
      '200': page(listSchema(resource, itemOf(resource, items)), {
        counted: { value: examples.page(resource, 'offset') },
        followed: { value: examples.page(resource, 'after') },
      }),
    }),
    faults: (resource) => [
      'query_invalid',
      ...(resource.filterables ? (['filter_malformed'] as const) : []),
      ...belowSomething(resource),
    ],
  },
  {
    name: 'create',
    method: 'POST',
    right: 'write',
    summary: ({ name }) => `Create one ${name} record.`,
    patterns: (resource) => [collectionPattern(resource)],
    isOurs: ({ parent }) => parent === undefined,
    headers: ['Idempotency-Key'],
    body: (resource) => ({
      schema: requestSchema(resource, 'create'),
      example: requestExample(resource, 'create'),
    }),
    success: (resource, writing) => ({
      '201': record('The new record, as a GET answers it.', resource, writing, {
        Location: header('The absolute address of the new record.', writing.examples.location(resource)),
      }),
    }),
    faults: (resource) => [
      ...SENT,
      'query_invalid',
      ...belowSomething(resource),
      'key_in_flight',
      ...(isRefusable(resource) ? (['conflict'] as const) : []),
      'key_reused',
      'outcome_unknown',
    ],
  },
  {
    name: 'get',
    method: 'GET',
    right: 'read',
    summary: ({ name }) => `Get one ${name} record by its identifier.`,
    patterns: itemPatterns,
    isOurs: never,
    headers: ['If-None-Match'],
    success: (resource, writing) => ({
      '200': record('The record.', resource, writing),
      '304': {
        ...OURS,
        description: 'The record still carries an ETag of If-None-Match.',
        headers: z.object({ ...ALWAYS, ETag: writing.etag, 'Cache-Control': HEADERS.cacheControl }),
      },
    }),
    faults: () => ['not_found'],
  },
  {
    name: 'update',
    method: 'PUT',
    right: 'write',
    summary: ({ name }) => `Change one ${name} record: what the body does not say stays as it is.`,
    patterns: itemPatterns,
    isOurs: never,
    headers: ['If-Match'],
    body: (resource) => ({
      schema: requestSchema(resource, 'update'),
      example: requestExample(resource, 'update'),
    }),
    success: (resource, writing) => ({ '200': record('The record as it is now.', resource, writing) }),
    faults: (resource) => [
      ...SENT,
      'not_found',
      'precondition_failed',
      ...(isRefusable(resource) || resource.bodyId !== 'ignored' ? (['conflict'] as const) : []),
      'outcome_unknown',
    ],
  },
  {
    name: 'delete',
    method: 'DELETE',
    right: 'write',
    summary: ({ name }) => `Delete one ${name} record, and all that hangs below it or names it.`,
    patterns: itemPatterns,
    isOurs: ({ parent }) => parent === undefined,
    headers: ['If-Match'],
    success: () => ({ '204': { description: 'It is gone.', headers: z.object(ALWAYS) } }),
    faults: (resource) => [
      'not_found',
      'precondition_failed',
      ...(isKept(resource) ? (['conflict'] as const) : []),
      'outcome_unknown',
    ],
  },
  {
    name: 'find',
    method: 'GET',
    right: 'read',
    summary: ({ name }) => `Find ${name} records of a whole realm by what they say.`,
    patterns: (resource) => (resource.finding ? [findingPattern(resource)] : []),
    isOurs: always,
    query: findParameters,
    success: (resource, writing) => ({
      '200': page(foundSchema(resource, foundItem(resource, writing)), {
        counted: { value: writing.examples.found(resource, 'offset') },
        followed: { value: writing.examples.found(resource, 'after') },
      }),
    }),
    faults: () => ['query_invalid', 'filter_malformed', 'not_found'],
  },
  {
    name: 'search',
    method: 'POST',
    right: 'read',
    summary: ({ name }) => `Find ${name} records with the filter in the body: it stands in no log of URLs.`,
    patterns: (resource) => {
      const pattern = searchPattern(resource);
      return pattern === undefined ? [] : [pattern];
    },
    isOurs: always,
    body: (resource) => ({
      schema: searchSchema,
      example: {
        filter: filterExample(resource, resource.finding?.by[0] ?? ['id']),
        page: { limit: 25, offset: 0 },
      },
    }),
    success: (resource, writing) => ({
      '200': page(searchedSchema(resource, searchedItem(resource, writing)), {
        counted: { value: writing.examples.found(resource, 'search') },
      }),
    }),
    faults: () => [...SENT, 'not_found'],
  },
  {
    name: 'search-every',
    method: 'POST',
    right: 'read',
    summary: ({ name }) => `Find ${name} records in every realm that the token may read.`,
    patterns: (resource) => (resource.everywhere ? [everywherePattern(resource)] : []),
    isOurs: always,
    body: (resource) => ({
      schema: everywhereSchema,
      example: {
        filter: filterExample(resource, resource.everywhere?.by[0] ?? []),
        page: { limit: 25 },
      },
    }),
    success: (resource, writing) => ({
      '200': page(everywhereFoundSchema(resource, foundItem(resource, writing)), {
        found: { value: writing.examples.everywhere(resource) },
      }),
    }),
    faults: () => SENT,
  },
];

/** Of a list in one realm the path says whose the items are. */
function searchedItem(resource: Resource, writing: DocumentContext): z.ZodType {
  return itemOf(resource, resource.finding ? writing.foundItems : writing.items);
}

function foundItem(resource: Resource, { foundItems }: DocumentContext): z.ZodType {
  return itemOf(resource, foundItems);
}

function itemOf(resource: Resource, items: ReadonlyMap<Resource, z.ZodType>): z.ZodType {
  // There is one of each.
  return items.get(resource) as z.ZodType;
}

function page(schema: z.ZodType, examples: Record<string, { value: unknown }>): ZodOpenApiResponseObject {
  return {
    description: 'The records; none is no fault.',
    headers: z.object({ ...ALWAYS, 'Cache-Control': HEADERS.cacheControl }),
    content: { 'application/json': { schema, examples } },
  };
}

function record(
  description: string,
  resource: Resource,
  { examples, etag, records }: DocumentContext,
  more: Record<string, z.ZodType> = {},
): ZodOpenApiResponseObject {
  const schema = records.get(resource) ?? recordSchema(resource);
  return {
    description,
    headers: z.object({ ...ALWAYS, ETag: etag, 'Cache-Control': HEADERS.cacheControl, ...more }),
    content: { 'application/json': { schema, example: examples.record(resource) } },
  };
}

/** Every operation of every resource, by path. */
export function resourcePaths(writing: DocumentContext): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const resource of RESOURCES) {
    for (const verb of VERBS) {
      const operationAt = operationOf(verb, resource, writing);
      for (const pattern of verb.patterns(resource)) {
        const path = pattern.replace(/:(\w+)/g, '{$1}');
        paths[path] = { ...paths[path], [verb.method.toLowerCase()]: operationAt(pattern) };
      }
    }
    Object.assign(paths, unofferedPaths(resource, writing));
  }
  return paths;
}

/** One verb of one resource. It answers the same wherever it answers. */
function operationOf(
  verb: Verb,
  resource: Resource,
  writing: DocumentContext,
): (pattern: string) => ZodOpenApiOperationObject {
  const body = verb.body?.(resource);
  const query = verb.query?.(resource);
  const operation = {
    summary: verb.summary(resource),
    description: describe(verb, resource),
    tags: [resource.name],
    security: [{ client_credentials: [`${resource.scope}:${verb.right}`] }],
    ...(body ? { requestBody: { required: true, content: { 'application/json': body } } } : {}),
    responses: {
      ...verb.success(resource, writing),
      ...writing.faults(...ASKED, ...verb.faults(resource)),
    },
  };
  return (pattern) => {
    const isUnversioned = !pattern.startsWith('/v2/');
    const names = [...pattern.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '');
    return {
      ...(verb.isOurs(resource) || isUnversioned ? OURS : {}),
      operationId: `${verb.name}-${resource.name}${isUnversioned ? '-by-self-link' : ''}`,
      requestParams: {
        ...(names.length > 0 ? { path: pathParameters(resource, names) } : {}),
        ...(query ? { query } : {}),
        header: headersNamed([...(verb.headers ?? []), 'X-Request-Id']),
      },
      ...operation,
    };
  };
}

function describe(verb: Verb, resource: Resource): string {
  const isForAll = !resource.parent && (verb.name === 'create' || verb.name === 'delete');
  const filters = filtersOf(verb, resource);
  return `${resource.summary}${isForAll ? ' Only clients of all realms may do this.' : ''}${filters}`;
}

/** What a search takes as a filter. */
function filtersOf({ name }: Verb, resource: Resource): string {
  if (name === 'search-every' && resource.everywhere)
    return ` The filter is one of: ${everywhereWords(resource.everywhere)}.`;
  if (name !== 'search') return '';
  return resource.finding ? ` The filter is ${findingWords(resource)}` : ' The filter is one of the list.';
}

/** Where further links of a record lead (contract 8, row 31). */
function unofferedPaths(resource: Resource, { faults }: DocumentContext): ZodOpenApiPathsObject {
  const links = Object.entries(resource.moreLinks ?? {});
  return Object.fromEntries(
    links.map(([name, link]) => {
      const path = link.split('?')[0] ?? '';
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, each]) => each ?? '');
      const get: ZodOpenApiOperationObject = {
        operationId: `visit-${name}`,
        summary: `Where the link ${name} of an ${resource.name} record leads: not offered yet.`,
        tags: [resource.name],
        security: [],
        requestParams: { path: linkParameters(resource, names) },
        responses: faults('rate_limited', 'not_offered', 'overloaded', 'unavailable'),
      };
      return [path, { get }];
    }),
  );
}
