import type { Json, JsonObject } from '../../support/json_schema.ts';
import {
  type Operation,
  type OperationResponse,
  openResponseCheck,
  responseComponent,
} from '../../support/openapi_client.ts';
import { checkedResponse } from '../../support/service.ts';
import type { FuzzRequest } from './fuzz_request.ts';

/** Returns the violations of one response, in words. */
export type CheckResponse = (request: FuzzRequest, received: OperationResponse) => Promise<readonly string[]>;

/** Finds the operation that a method and target address, which may not be the one the request was made from. */
export type FindOperation = (
  method: string,
  target: string,
) => Operation | 'unknown_route' | 'method_not_allowed';

/**
 * Checks responses against an OpenAPI document: by the operation that the method and path address, or by the documented
 * error for an unknown route or method.
 */
export function openFuzzResponseCheck(document: JsonObject, operations: readonly Operation[]) {
  const findOperation = operationFinder(document, operations);
  const schemaViolations = openResponseCheck(document);

  function documented({ method, target }: FuzzRequest, { status }: OperationResponse) {
    const found = findOperation(method, target);
    if (typeof found !== 'string') return { operationId: found.id, answer: found.responses[String(status)] };
    const isExpected = status === (found === 'unknown_route' ? 404 : 405);
    return { operationId: found, answer: isExpected ? responseComponent(document, found) : undefined };
  }

  const check: CheckResponse = async (request, received) => {
    const { status, text, headers } = received;
    const { operationId, answer } = documented(request, received);
    if (!answer) return [`${operationId}: ${status} is not documented`];
    const isHead = request.method === 'HEAD';
    const output = JSON.stringify([...headers]) + text;
    const complaints = [
      ...schemaViolations(answer, received, isHead),
      ...(status === 500 ? ['an internal error'] : []),
      ...(request.secrets.some((secret) => output.includes(secret)) ? ['repeats a secret'] : []),
      ...(status < 400 || isHead ? [] : await errorViolations(received, request.mark)),
    ];
    return complaints.map((complaint) => `${operationId} ${status}: ${complaint}`);
  };
  /** Whether the document has this status for the addressed operation. */
  function isDocumented(method: string, target: string, status: number): boolean {
    const found = findOperation(method, target);
    return typeof found !== 'string' && String(status) in found.responses;
  }

  return { check, findOperation, isDocumented };
}

/** An error has the documented shape and repeats no text of the request. */
async function errorViolations(
  { status, headers, text }: OperationResponse,
  mark: string,
): Promise<readonly string[]> {
  try {
    await checkedResponse(new Response(text, { status, headers }), [mark]);
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

function operationFinder(document: JsonObject, operations: readonly Operation[]): FindOperation {
  const [server] = document.servers as unknown as readonly { readonly url: string }[];
  const paths = [...new Set(operations.map(({ path }) => path))];
  const templates = paths.map((path) => ({ path, segments: path.split('/') }));
  return (method, target) => {
    const { pathname } = new URL(`${server?.url}${target}`);
    const segments = pathname
      .replace(/\/{2,}/g, '/')
      .replace(/(?<=.)\/$/, '')
      .split('/');
    const fits = templates.filter(
      (each) =>
        each.segments.length === segments.length &&
        each.segments.every((part, at) => matchesSegment(part, segments[at])),
    );
    // Literal segments win over parameters.
    const specificity = ({ segments: parts }: (typeof templates)[number]) =>
      parts.map((part) => (part.startsWith('{') ? '1' : '0')).join('');
    const [best] = fits.sort((one, other) => (specificity(one) < specificity(other) ? -1 : 1));
    const name = method === 'HEAD' ? 'get' : method.toLowerCase();
    // `/` leads to the console, and is no operation.
    if (!best) return pathname === '/' && name !== 'get' ? 'method_not_allowed' : 'unknown_route';
    return operations.find((each) => each.path === best.path && each.method === name) ?? 'method_not_allowed';
  };
}

function matchesSegment(part: string, segment: string | undefined): boolean {
  return part.startsWith('{') ? segment !== '' : part === segment;
}

/** Members that were returned with another value than was sent. References may come back in lower case. */
export function changedMembers(output: Json | undefined, received: Json | undefined): readonly string[] {
  const [sent, got] = [dataOf(output), dataOf(received)];
  return Object.entries(sent)
    .filter(([name, value]) => name !== 'id' && name in got && !isSame(value, got[name]))
    .map(([name]) => name);
}

function dataOf(body: Json | undefined): Readonly<Record<string, Json>> {
  const { data = {} } = (body ?? {}) as { readonly data?: Record<string, Json> };
  return data;
}

function isSame(sent: Json, got: Json | undefined): boolean {
  if (typeof sent === 'string' && /^[0-9a-fA-F-]{36}$/.test(sent)) return sent.toLowerCase() === got;
  return Bun.deepEquals(sent, got);
}
