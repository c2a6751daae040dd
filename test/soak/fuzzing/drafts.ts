import { isObject, type Json, type Schema } from '../../support/json_schema.ts';
import { bodyMembers, invalidValues } from '../../support/openapi_bodies.ts';
import type { Operation, OperationRequest } from '../../support/openapi_client.ts';
import type { Draw } from './draw.ts';
import type { Finds } from './reverse_lookup_index.ts';
import type { Rights } from './rights.ts';
import { harmlessText } from './texts.ts';

/** A request on its way to become a wrong one. */
export interface Draft {
  readonly operation: Operation;
  method: string;
  readonly path: Record<string, string>;
  /** What is done to the path when it is written. */
  spell: (path: string) => string;
  /** As they stand in the URL. */
  readonly query: string[];
  readonly headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | undefined;
  /** What the body says, as long as that is known. */
  said: Json | undefined;
}

/** Members whose text nobody may hear. */
export const SECRET_NAME = /secret|password$|token$/;

/** What requests of one run have in common. */
export interface Workshop {
  readonly draw: Draw;
  readonly rights: Rights;
  readonly finds: Finds;
}

/** What is right in everything, in words of its own. */
export async function rightDraft(
  operation: Operation,
  right: OperationRequest,
  workshop: Workshop,
  mark: string,
): Promise<Draft> {
  const { draw, rights } = workshop;
  const { body, scopes, method } = operation;
  const said = isObject(right.body as Json)
    ? varied(body?.media.schema ?? {}, right.body as Json, draw, mark)
    : undefined;
  return {
    operation,
    method: method.toUpperCase(),
    path: { ...right.path },
    spell: (path) => path,
    query: [...(right.query ?? '').split('&').filter((each) => each !== ''), ...drawnQuery(operation, draw)],
    headers: {
      ...(scopes ? { Authorization: `Bearer ${await rights.ofAll()}` } : {}),
      ...(body ? { 'Content-Type': body.type } : {}),
      ...drawnHeaders(operation, workshop, mark),
    },
    body: typeof right.body === 'string' || !body ? (right.body as string | undefined) : JSON.stringify(said),
    said,
  };
}

function drawnHeaders({ parameters }: Operation, { draw, finds }: Workshop, mark: string) {
  const chosen = parameters.filter((each) => each.in === 'header' && draw.happens(0.3));
  return Object.fromEntries(chosen.map(({ name }) => [name, headerOf(name, draw, finds, mark)]));
}

function drawnQuery({ parameters }: Operation, draw: Draw): readonly string[] {
  return parameters
    .filter((each) => each.in === 'query' && !each.required && draw.happens(0.3))
    .map(
      ({ name, schema, example }) =>
        `${encoded(name)}=${encoded(drawn(schema, String(example ?? ''), draw))}`,
    );
}

/** Where two parameters do not go together, or a condition is not met, the answer is a documented refusal. */
function headerOf(name: string, draw: Draw, finds: Finds, mark: string): string {
  if (/^If-/.test(name)) return draw.one(['*', finds.etag(draw), `"${mark}"`, `W/${finds.etag(draw)}`]);
  return name === 'X-Request-Id' ? `r-${draw.word(8)}` : `k${draw.word(15)}`;
}

function drawn({ minimum, maximum, enum: choices }: Schema, example: string, draw: Draw): string {
  if (choices) return String(draw.one(choices));
  if (minimum !== undefined && maximum !== undefined)
    return String(minimum + draw.below(maximum - minimum + 1));
  return example;
}

/** The same body in other words: free texts, choices, switches. */
function varied(schema: Schema, value: Json, draw: Draw, mark: string): Json {
  const { anyOf, properties, type, maxLength = 255, enum: choices } = schema;
  if (schema['x-authrealm-reads'] !== undefined || 'const' in schema) return value;
  if (anyOf) return varied(anyOf.find((each) => each.type !== 'null') ?? {}, value, draw, mark);
  if (choices) return draw.one(choices);
  if (type === 'boolean') return draw.happens(0.5);
  if (isObject(value) && properties) {
    const members = Object.entries(value).map(([name, each]) => {
      const of = properties[name];
      // A secret is no word that stands elsewhere.
      const own = SECRET_NAME.test(name) ? `s${draw.word(15)}` : mark;
      return [name, of === undefined ? each : varied(of, each, draw, own)];
    });
    return Object.fromEntries(members);
  }
  if (schema.format === 'email') return `${mark}@example.com`;
  const isFree = type === 'string' && schema.format === undefined && schema.pattern === undefined;
  return isFree ? harmlessText(draw, mark, maxLength) : value;
}

export function encoded(text: string): string {
  // A lone surrogate has no bytes; the nearest thing that can be sent is what stands for it.
  return encodeURIComponent(text.toWellFormed());
}

/** A member that a body of the operation can have, and something that it cannot be; undefined where there is none. */
export function misfitOf(
  { body }: Operation,
  draw: Draw,
): { readonly at: readonly string[]; readonly text: string } | undefined {
  const members = bodyMembers(body?.media.schema ?? {});
  if (members.length === 0) return undefined;
  const { at, schema } = draw.one(members);
  return { at, text: JSON.stringify(draw.one(invalidValues(schema))) };
}
