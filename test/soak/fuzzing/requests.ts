import { isObject, type Json } from '../../support/json_schema.ts';
import type { Operation, OperationRequest } from '../../support/openapi_client.ts';
import { type Draft, encoded, rightDraft, SECRET_NAME, type Workshop } from './drafts.ts';
import { MUTATIONS } from './mutations.ts';

/** How far a request is from one that is right in everything, and the share of each. */
const INTENTS = { right: 0.3, near: 0.45, hostile: 0.25 } as const;
export type Intent = keyof typeof INTENTS;

/** A request as it is sent, and what nobody may hear of it. */
export interface Asked {
  readonly operation: Operation;
  readonly intent: Intent;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** The body where it is JSON that was meant well. */
  readonly said: Json | undefined;
  /** Stands in every text of our own. */
  readonly mark: string;
  /** No answer may repeat these. */
  readonly secrets: readonly string[];
}

function drawnIntent(share: number): Intent {
  if (share < INTENTS.right) return 'right';
  return share < INTENTS.right + INTENTS.near ? 'near' : 'hostile';
}

/** Makes one request of an operation from the right one. */
export async function draftOf(
  operation: Operation,
  right: OperationRequest,
  workshop: Workshop,
): Promise<Asked> {
  const { draw, rights } = workshop;
  const mark = `m${draw.word(11)}`;
  const intent = drawnIntent(draw.share());
  const draft = await rightDraft(operation, right, workshop, mark);
  const count = intent === 'right' ? 0 : intent === 'near' ? 1 : 2 + draw.below(4);
  for (let left = count; left > 0; left -= 1) await draw.one(MUTATIONS)(draft, workshop, mark);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(draft.path[name] ?? ''));
  const query = draft.query.length > 0 ? `?${draft.query.join('&')}` : '';
  const all = operation.scopes === undefined ? [] : [await rights.ofAll()];
  return {
    operation,
    intent,
    method: draft.method,
    target: draft.spell(path) + query,
    headers: draft.headers,
    body: draft.method === 'GET' || draft.method === 'HEAD' ? undefined : draft.body,
    said: draft.said,
    mark,
    secrets: [...all, ...secretsOf(draft, mark)],
  };
}

/** Texts under names of secrets, wherever they stand in what is said. */
function secretsOf({ said, body, headers }: Draft, mark: string): readonly string[] {
  const found: string[] = [];
  const search = (value: Json, name: string): void => {
    if (typeof value === 'string' && SECRET_NAME.test(name) && value.length >= 8) found.push(value);
    if (isObject(value)) for (const [inner, each] of Object.entries(value)) search(each, inner);
  };
  if (said !== undefined) search(said, '');
  else if (typeof body === 'string' && /^[\w-]+=/.test(body))
    for (const [name, value] of new URLSearchParams(body)) search(value, name);
  const key = headers['Idempotency-Key'];
  // One that carries the mark says what stands elsewhere as well.
  return key !== undefined && key.length >= 8 && !key.includes(mark) ? [...found, key] : found;
}
