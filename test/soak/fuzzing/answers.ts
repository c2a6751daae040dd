import type { Json, JsonObject } from '../../support/json_schema.ts';
import {
  type Operation,
  type OperationResponse,
  openResponseCheck,
  responseComponent,
} from '../../support/openapi_client.ts';
import { checkedResponse } from '../../support/service.ts';
import type { Asked } from './requests.ts';

/** What is wrong with an answer, in words. */
export type JudgeOf = (asked: Asked, received: OperationResponse) => Promise<readonly string[]>;

/** Finds what a request addressed, whatever it was meant to address. */
export type Addressed = (
  method: string,
  target: string,
) => Operation | 'unknown_route' | 'method_not_allowed';

/**
 * Holds answers to a document. What was asked counts as what it addressed: the operation of that path and method, or the
 * answer that the document has for what is none.
 */
export function openAnswers(document: JsonObject, operations: readonly Operation[]) {
  const addressed = addressedBy(document, operations);
  const broken = openResponseCheck(document);

  function documented({ method, target }: Asked, { status }: OperationResponse) {
    const found = addressed(method, target);
    if (typeof found !== 'string') return { what: found.id, answer: found.responses[String(status)] };
    const isIt = status === (found === 'unknown_route' ? 404 : 405);
    return { what: found, answer: isIt ? responseComponent(document, found) : undefined };
  }

  const judge: JudgeOf = async (asked, received) => {
    const { status, text, headers } = received;
    const { what, answer } = documented(asked, received);
    if (!answer) return [`${what}: ${status} is not documented`];
    const isHead = asked.method === 'HEAD';
    const said = JSON.stringify([...headers]) + text;
    const complaints = [
      ...broken(answer, received, isHead),
      ...(status === 500 ? ['a bug'] : []),
      ...(asked.secrets.some((secret) => said.includes(secret)) ? ['repeats a secret'] : []),
      ...(status < 400 || isHead ? [] : await refusalBroken(received, asked.mark)),
    ];
    return complaints.map((complaint) => `${what} ${status}: ${complaint}`);
  };
  /** Whether the document has this status for what was asked. */
  function isDocumented(method: string, target: string, status: number): boolean {
    const found = addressed(method, target);
    return typeof found !== 'string' && String(status) in found.responses;
  }

  return { judge, addressed, isDocumented };
}

/** An error has the shape of the contract, and repeats nothing of what was sent. */
async function refusalBroken(
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

function addressedBy(document: JsonObject, operations: readonly Operation[]): Addressed {
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
        each.segments.every((part, at) => fitsAt(part, segments[at])),
    );
    // What is spelled out goes before what is named.
    const literal = ({ segments: parts }: (typeof templates)[number]) =>
      parts.map((part) => (part.startsWith('{') ? '1' : '0')).join('');
    const [best] = fits.sort((one, other) => (literal(one) < literal(other) ? -1 : 1));
    if (!best) return 'unknown_route';
    const name = method === 'HEAD' ? 'get' : method.toLowerCase();
    return operations.find((each) => each.path === best.path && each.method === name) ?? 'method_not_allowed';
  };
}

function fitsAt(part: string, segment: string | undefined): boolean {
  return part.startsWith('{') ? segment !== '' : part === segment;
}

/** Members that were sent and are answered as something else. References may come back in lower case. */
export function changedMembers(said: Json | undefined, answered: Json | undefined): readonly string[] {
  const [sent, got] = [dataOf(said), dataOf(answered)];
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
