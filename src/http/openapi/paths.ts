import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import type { FaultCode } from '../../domain/fault.ts';
import type { Documentation, DocumentContext, Operation } from '../pipeline/operation.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { headersNamed } from './parameters.ts';
import { ALWAYS, EXTENSION, namedExamples } from './responses.ts';

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
  const { name, access } = operation;
  const documentation = operation.document(context);
  const { summary, description, tag, isExtension, furtherScopes, body } = documentation;
  const requestParams = requestParameters(documentation);
  return {
    ...(isExtension ? EXTENSION : {}),
    operationId: name,
    ...(Object.keys(requestParams).length > 0 ? { requestParams } : {}),
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    security: securityOf(access),
    ...(furtherScopes ? { 'x-authrealm-further-scopes': furtherScopes } : {}),
    ...(body ? { requestBody: requestBody(body) } : {}),
    responses: responsesOf(operation, documentation, context),
  };
}

function securityOf(access: Operation<never>['access']): Record<string, string[]>[] {
  if (access === 'open') return [];
  if (access === 'session') return [{ session: [] }];
  const scopes = 'scope' in access ? [access.scope] : access.anyScope;
  return scopes.map((scope) => ({ client_credentials: [scope] }));
}

function requestParameters({ path, query, headers = [], ownHeaders }: Documentation) {
  const header = headersNamed(headers).extend(ownHeaders ?? {});
  return {
    ...(path ? { path } : {}),
    ...(query ? { query } : {}),
    ...(Object.keys(header.shape).length > 0 ? { header } : {}),
  };
}

function requestBody({ schema, example, further, form }: NonNullable<Documentation['body']>) {
  const type = form ? 'application/x-www-form-urlencoded' : JSON_TYPE;
  const examples = further ? { examples: namedExamples({ plain: example, ...further }) } : { example };
  return {
    required: true,
    content: { [type]: { schema, ...examples } },
  } satisfies ZodOpenApiRequestBodyObject;
}

function responsesOf(
  operation: Operation<never>,
  documentation: Documentation,
  { faults }: DocumentContext,
): ZodOpenApiResponsesObject {
  const { success, headers = [], responses } = documentation;
  return {
    ...(success ? { [success.status]: successResponse(success) } : {}),
    ...(headers.includes('If-None-Match') ? { '304': notModified(success) } : {}),
    ...faults(...faultsOf(operation, documentation)),
    ...responses,
  };
}

function successResponse({ description, headers, content }: NonNullable<Documentation['success']>) {
  return {
    description,
    headers: z.object({ ...ALWAYS, ...headers }),
    ...(content ? { content } : {}),
  };
}

function notModified(success: Documentation['success']) {
  return {
    ...EXTENSION,
    description: 'If-None-Match has the current ETag.',
    headers: z.object({ ...ALWAYS, ...success?.headers }),
  };
}

/** The faults of reading a body. */
const BODY_FAULTS = {
  json: ['malformed', 'invalid', 'request_timeout', 'body_too_large', 'unsupported_media_type'],
  form: ['request_timeout', 'body_too_large'],
} as const satisfies Record<string, readonly FaultCode[]>;

/** Every fault of an operation: those implied by its description, and those that it lists. */
function faultsOf(
  { access, isUncounted }: Operation<never>,
  { body, query, headers = [], isFixed, faults = [] }: Documentation,
): readonly FaultCode[] {
  const when = (condition: boolean, ...codes: readonly FaultCode[]) => (condition ? codes : []);
  const isRepeatable = headers.includes('Idempotency-Key');
  return [
    ...when(access !== 'open', 'unauthenticated', 'insufficient_scope'),
    ...when(!isUncounted, 'rate_limited', 'overloaded'),
    ...when(!isFixed, 'internal'),
    'unavailable',
    ...(body ? BODY_FAULTS[body.form ? 'form' : 'json'] : []),
    ...when(query !== undefined || isRepeatable, 'invalid_query'),
    ...when(headers.includes('If-Match'), 'precondition_failed'),
    ...faults,
    ...when(isRepeatable, 'idempotency_key_in_use', 'idempotency_key_reused', 'unknown_outcome'),
  ];
}
