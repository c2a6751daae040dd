import { isObject, type Json } from '../../support/json_schema.ts';
import type { Operation, OperationRequest } from '../../support/openapi_client.ts';
import { type DraftContext, encoded, type RequestDraft, SECRET_NAME, validDraft } from './request_draft.ts';
import { MUTATIONS } from './request_mutations.ts';

/** How far requests are from a valid one, with the share of each kind. */
const INTENT_SHARES = { valid: 0.3, near: 0.45, hostile: 0.25 } as const;
export type Intent = keyof typeof INTENT_SHARES;

/** A request as it is sent, with the texts that no response may repeat. */
export interface FuzzRequest {
  readonly operation: Operation;
  readonly intent: Intent;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** The parsed body, where it is valid. */
  readonly json: Json | undefined;
  /** Part of every generated text. */
  readonly mark: string;
  /** No response may repeat these. */
  readonly secrets: readonly string[];
}

function intentAt(share: number): Intent {
  if (share < INTENT_SHARES.valid) return 'valid';
  return share < INTENT_SHARES.valid + INTENT_SHARES.near ? 'near' : 'hostile';
}

/** Draws one request of an operation, made from a valid one. */
export async function drawRequest(
  operation: Operation,
  valid: OperationRequest,
  context: DraftContext,
): Promise<FuzzRequest> {
  const { draw, accessTokens } = context;
  const mark = `m${draw.word(11)}`;
  const intent = intentAt(draw.share());
  const draft = await validDraft(operation, valid, context, mark);
  const count = intent === 'valid' ? 0 : intent === 'near' ? 1 : 2 + draw.below(4);
  for (let left = count; left > 0; left -= 1) await draw.one(MUTATIONS)(draft, context, mark);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(draft.path[name] ?? ''));
  const query = draft.query.length > 0 ? `?${draft.query.join('&')}` : '';
  const tokens = operation.scopes === undefined ? [] : [await accessTokens.valid()];
  return {
    operation,
    intent,
    method: draft.method,
    target: draft.rewritePath(path) + query,
    headers: draft.headers,
    body: draft.method === 'GET' || draft.method === 'HEAD' ? undefined : draft.body,
    json: draft.json,
    mark,
    secrets: [...tokens, ...secretsOf(draft, mark)],
  };
}

/** The values of secret members, anywhere in the body. */
function secretsOf({ json, body, headers }: RequestDraft, mark: string): readonly string[] {
  const found: string[] = [];
  const search = (value: Json, name: string): void => {
    if (typeof value === 'string' && SECRET_NAME.test(name) && value.length >= 8) found.push(value);
    if (isObject(value)) for (const [inner, each] of Object.entries(value)) search(each, inner);
  };
  if (json !== undefined) search(json, '');
  else if (typeof body === 'string' && /^[\w-]+=/.test(body))
    for (const [name, value] of new URLSearchParams(body)) search(value, name);
  const key = headers['Idempotency-Key'];
  // A key that contains the mark is not secret: the mark is in other texts too.
  return key !== undefined && key.length >= 8 && !key.includes(mark) ? [...found, key] : found;
}
