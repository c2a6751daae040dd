import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import type { FaultCode } from '../../model/fault.ts';
import type { Access, Documentation, DocumentContext, Operation } from '../pipeline/operation.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { REQUEST_HEADERS } from './parameters.ts';
import { ALWAYS, EXTENSION } from './responses.ts';

/** The operations by path, as the document lists them. */
export function pathsOf(
  operations: readonly Operation<never>[],
  context: DocumentContext,
): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const operation of operations) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: operationObject(operation, context) };
  }
  return paths;
}

function operationObject(operation: Operation<never>, context: DocumentContext): ZodOpenApiOperationObject {
  const { name, access, includes = [] } = operation;
  const documentation = operation.document(context);
  const { summary, description, tag, isExtension, body } = documentation;
  const furtherScopes = [
    ...includes.map(({ scope }) => `${scope}:read`),
    ...(documentation.furtherScopes ?? []),
  ];
  const requestParams = requestParameters(documentation);
  return {
    ...(isExtension ? EXTENSION : {}),
    operationId: name,
    ...(Object.keys(requestParams).length > 0 ? { requestParams } : {}),
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    security: securityOf(access),
    ...(furtherScopes.length > 0 ? { 'x-authrealm-further-scopes': furtherScopes } : {}),
    ...(body ? { requestBody: requestBody(operation, body) } : {}),
    responses: responsesOf(operation, documentation, context),
  };
}

/** Whether its callers need no token. */
function isAnonymous(access: Access): access is 'open' | 'credentials' {
  return access === 'open' || access === 'credentials';
}

function securityOf(access: Access): Record<string, string[]>[] {
  if (isAnonymous(access)) return [];
  if (access === 'session') return [{ session: [] }];
  const scopes = 'scope' in access ? [access.scope] : access.anyScope;
  return scopes.map((scope) => ({ client_credentials: [scope] }));
}

function requestParameters({ path, query, headers = [], ownHeaders }: Documentation) {
  const shared = headers.map((name) => [name, REQUEST_HEADERS[name]]);
  const header = z.object({ ...Object.fromEntries(shared), ...ownHeaders });
  return {
    ...(path ? { path } : {}),
    ...(query ? { query } : {}),
    ...(Object.keys(header.shape).length > 0 ? { header } : {}),
  };
}

function requestBody({ body = 'json' }: Operation<never>, documented: NonNullable<Documentation['body']>) {
  const { schema, example, examples } = documented;
  const type = body === 'form' ? 'application/x-www-form-urlencoded' : JSON_TYPE;
  const content = Object.entries(examples ?? { [type]: example }).map(([media, of]) => [
    media,
    { schema, example: of },
  ]);
  return { required: true, content: Object.fromEntries(content) } satisfies ZodOpenApiRequestBodyObject;
}

function responsesOf(
  operation: Operation<never>,
  documentation: Documentation,
  { faults }: DocumentContext,
): ZodOpenApiResponsesObject {
  const { success, headers: requestHeaders = [], responses } = documentation;
  const headers = z.object({ ...ALWAYS, ...success?.headers });
  const { status = 200, description = '', content } = success ?? {};
  const notModified = { ...EXTENSION, description: 'If-None-Match has the current ETag.', headers };
  return {
    ...(success ? { [status]: { description, headers, ...(content ? { content } : {}) } } : {}),
    ...(requestHeaders.includes('If-None-Match') ? { '304': notModified } : {}),
    ...faults(...faultsOf(operation, documentation)),
    ...responses,
  };
}

/** The faults of reading a body. */
const BODY_FAULTS = {
  json: ['malformed', 'invalid', 'request_timeout', 'body_too_large', 'unsupported_media_type'],
  form: ['request_timeout', 'body_too_large'],
  file: ['malformed', 'request_timeout', 'upload_too_large'],
} as const satisfies Record<string, readonly FaultCode[]>;

/** Every fault of an operation: those implied by its description, and those that it lists. */
function faultsOf(
  { access, body, isUncounted }: Operation<never>,
  { path, query, headers = [], isFixed, faults = [] }: Documentation,
): readonly FaultCode[] {
  const when = (condition: boolean, ...codes: readonly FaultCode[]) => (condition ? codes : []);
  const isRepeatable = headers.includes('Idempotency-Key');
  const all: readonly FaultCode[] = [
    ...when(!isAnonymous(access), 'unauthenticated', 'insufficient_scope'),
    ...when(!isUncounted, 'rate_limited', 'overloaded'),
    ...when(!isFixed, 'internal'),
    'unavailable',
    ...(body ? BODY_FAULTS[body] : []),
    ...when((query !== undefined && access !== 'open') || isRepeatable, 'invalid_query'),
    ...when(headers.includes('If-Match'), 'precondition_failed'),
    ...faults,
    // Open operations with parameters have errors of their own.
    ...when(path !== undefined && access !== 'open', 'not_found'),
    ...when(isRepeatable, 'idempotency_key_in_use', 'idempotency_key_reused', 'unknown_outcome'),
  ];
  return [...new Set(all)];
}
