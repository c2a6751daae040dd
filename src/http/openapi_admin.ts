import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import type { FaultCode } from '../domain/fault.ts';
import { ADMIN_PATH, type Operation, type PathParameter } from './admin/operation.ts';
import { ADMIN_OPERATIONS, ADMIN_SCOPE } from './admin/routes.ts';
import { ASKED, SENT, type Writing } from './openapi_operations.ts';
import { headersNamed } from './openapi_parameters.ts';
import { ALWAYS, HEADERS, header, OURS } from './openapi_responses.ts';

export const ADMIN_TAG = 'Administration';

/** Every administrative operation, by path. */
export function adminPaths(writing: Writing): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const operation of ADMIN_OPERATIONS) {
    const path = `${ADMIN_PATH}${operation.path}`.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described(operation, writing) };
  }
  return paths;
}

function described(operation: Operation, writing: Writing): ZodOpenApiOperationObject {
  const { name, summary, description, params, query, data, isConditional } = operation;
  const body = data && {
    schema: z.object({ data: data.schema }).meta({ id: `${name}.request` }),
    example: { data: data.example },
  };
  return {
    ...OURS,
    operationId: name,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [ADMIN_TAG],
    security: [{ client_credentials: [ADMIN_SCOPE] }],
    requestParams: {
      ...(params ? { path: segments(params) } : {}),
      ...(query ? { query } : {}),
      header: headersNamed([...(isConditional ? (['If-Match'] as const) : []), 'X-Request-Id']),
    },
    ...(body ? { requestBody: { required: true, content: { 'application/json': body } } } : {}),
    responses: {
      [operation.success.status]: success(operation, writing),
      ...writing.faults(...ASKED, ...faultsOf(operation)),
    },
  };
}

function segments(params: Readonly<Record<string, PathParameter>>): z.ZodObject {
  return z.object(
    Object.fromEntries(
      Object.entries(params).map(([name, { description, example, readBy }]) => [
        name,
        z.string().meta({
          param: { description, example },
          ...(readBy === undefined ? {} : { 'x-authrealm-reads': readBy }),
        }),
      ]),
    ),
  );
}

function faultsOf({ query, data, isConditional, faults = [] }: Operation): readonly FaultCode[] {
  return [
    ...(data ? SENT : []),
    ...(query ? (['query_invalid'] as const) : []),
    ...(isConditional ? (['precondition_failed'] as const) : []),
    ...faults,
  ];
}

function success({ success }: Operation, { etag }: Writing): ZodOpenApiResponseObject {
  const { description, schema, example, hasEtag, location } = success;
  const headers = {
    ...ALWAYS,
    'Cache-Control': HEADERS.noStore,
    ...(hasEtag ? { ETag: etag } : {}),
    ...(location === undefined
      ? {}
      : {
          Location: header(
            'The absolute address of what was made.',
            `https://idp.example${ADMIN_PATH}${location}`,
          ),
        }),
  };
  return {
    description,
    headers: z.object(headers),
    ...(schema ? { content: { 'application/json': { schema, example } } } : {}),
  };
}
