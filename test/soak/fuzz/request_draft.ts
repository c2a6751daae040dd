import { REQUEST_HEADERS } from '../../../src/http/openapi/parameters.ts';
import { isObject, type Json, type Schema } from '../../support/json_schema.ts';
import { bodyMembers, invalidValues } from '../../support/openapi_bodies.ts';
import type { Operation, OperationRequest } from '../../support/openapi_client.ts';
import type { AccessTokens } from './access_tokens.ts';
import type { Draw } from './draw.ts';
import type { ObservedValues } from './observed_values.ts';
import { harmlessText } from './texts.ts';

/** A request that mutations may still change. */
export interface RequestDraft {
  readonly operation: Operation;
  method: string;
  readonly path: Record<string, string>;
  /** Applied to the path when the request is built. */
  rewritePath: (path: string) => string;
  /** `name=value` pairs as they appear in the URL. */
  readonly query: string[];
  readonly headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | undefined;
  /** The parsed body, while it is valid JSON. */
  json: Json | undefined;
}

/** Members whose text no response may repeat. */
export const SECRET_NAME = /secret|password$|token$/;

/** Shared by all requests of one run. */
export interface DraftContext {
  readonly draw: Draw;
  readonly accessTokens: AccessTokens;
  readonly observed: ObservedValues;
}

/** A valid request, with texts of its own. */
export async function validDraft(
  operation: Operation,
  valid: OperationRequest,
  context: DraftContext,
  mark: string,
): Promise<RequestDraft> {
  const { draw, accessTokens } = context;
  const { body, scopes, method } = operation;
  const json = isObject(valid.body as Json)
    ? drawBody(body?.media.schema ?? {}, valid.body as Json, draw, mark)
    : undefined;
  return {
    operation,
    method: method.toUpperCase(),
    path: { ...valid.path },
    rewritePath: (path) => path,
    query: [...(valid.query ?? '').split('&').filter((each) => each !== ''), ...drawQuery(operation, draw)],
    headers: {
      ...(scopes ? { Authorization: `Bearer ${await accessTokens.valid()}` } : {}),
      ...(body ? { 'Content-Type': body.type } : {}),
      ...valid.headers,
      ...drawHeaders(operation, context, mark),
    },
    body: typeof valid.body === 'string' || !body ? (valid.body as string | undefined) : JSON.stringify(json),
    json,
  };
}

/** Headers that any client may send to any record. Mutations add the others, such as the address of an end user. */
const COMMON_HEADERS = Object.keys(REQUEST_HEADERS);

function drawHeaders({ parameters }: Operation, { draw, observed }: DraftContext, mark: string) {
  const chosen = parameters.filter((each) => COMMON_HEADERS.includes(each.name) && draw.happens(0.3));
  return Object.fromEntries(chosen.map(({ name }) => [name, drawHeader(name, draw, observed, mark)]));
}

function drawQuery({ parameters }: Operation, draw: Draw): readonly string[] {
  return parameters
    .filter((each) => each.in === 'query' && !each.required && draw.happens(0.3))
    .map(
      ({ name, schema, example }) =>
        `${encoded(name)}=${encoded(drawParameter(schema, String(example ?? ''), draw))}`,
    );
}

/** Parameters that exclude each other and unmet conditions give a documented error. */
function drawHeader(name: string, draw: Draw, observed: ObservedValues, mark: string): string {
  if (/^If-/.test(name)) return draw.one(['*', observed.etag(draw), `"${mark}"`, `W/${observed.etag(draw)}`]);
  return name === 'X-Request-Id' ? `r-${draw.word(8)}` : `k${draw.word(15)}`;
}

function drawParameter({ minimum, maximum, enum: choices }: Schema, example: string, draw: Draw): string {
  if (choices) return String(draw.one(choices));
  if (minimum !== undefined && maximum !== undefined)
    return String(minimum + draw.below(maximum - minimum + 1));
  return example;
}

/** The same body with other free texts, choices and booleans. */
function drawBody(schema: Schema, value: Json, draw: Draw, mark: string): Json {
  const { anyOf, properties, type, maxLength = 255, enum: choices } = schema;
  if (schema['x-authrealm-reads'] !== undefined || 'const' in schema) return value;
  if (anyOf) return drawBody(anyOf.find((each) => each.type !== 'null') ?? {}, value, draw, mark);
  if (choices) return draw.one(choices);
  if (type === 'boolean') return draw.happens(0.5);
  if (isObject(value) && properties) {
    const members = Object.entries(value).map(([name, each]) => {
      const of = properties[name];
      if (name === 'email') return [name, `${mark}@example.com`];
      // A secret must differ from every other text of the request.
      const own = SECRET_NAME.test(name) ? `s${draw.word(15)}` : mark;
      // Another text would be an invalid filter.
      return [name, of === undefined || name === 'filter' ? each : drawBody(of, each, draw, own)];
    });
    return Object.fromEntries(members);
  }
  const isFree = type === 'string' && schema.format === undefined && schema.pattern === undefined;
  return isFree ? harmlessText(draw, mark, maxLength) : value;
}

export function encoded(text: string): string {
  // A lone surrogate has no UTF-8 encoding: send the replacement character.
  return encodeURIComponent(text.toWellFormed());
}

/** A member of the operation's body and a value that it must not have; undefined for an operation without members. */
export function drawMisfit(
  { body }: Operation,
  draw: Draw,
): { readonly at: readonly string[]; readonly text: string } | undefined {
  const members = bodyMembers(body?.media.schema ?? {});
  if (members.length === 0) return undefined;
  const { at, schema } = draw.one(members);
  return { at, text: JSON.stringify(draw.one(invalidValues(schema))) };
}
