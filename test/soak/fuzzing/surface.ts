import type { Json, JsonObject } from '../../support/json_schema.ts';
import {
  type Operation,
  type OperationResponse,
  operationsOf,
  successOf,
} from '../../support/openapi_client.ts';
import { seededRandom } from '../../support/random.ts';
import { changedMembers, openAnswers } from './answers.ts';
import { drawOf } from './draw.ts';
import { openMeeting } from './meeting.ts';
import { type Asked, draftOf, type Intent } from './requests.ts';
import { type Finds, openFinds } from './reverse_lookup_index.ts';
import type { Credentials } from './rights.ts';
import { openWorlds, type Worlds } from './worlds.ts';

/** A service under fire. */
export interface Target {
  readonly url: string;
  readonly credentials: Credentials;
}

export interface Firing {
  readonly seed: number;
  readonly requests: number;
  /** Ends before all requests are sent once so much time is over, beside that of the rest. */
  readonly millisecondsMax?: number;
  readonly atOnce: number;
  readonly rest?: Rest;
}

/**
 * Once so much time is over nobody sends anything until `during` is done, which begins when nothing is under way any more. It
 * is left out where all ends before.
 */
export interface Rest {
  readonly afterMs: number;
  readonly during: () => Promise<void>;
}

/** What became of requests. */
export interface Fired {
  readonly sent: number;
  readonly operations: number;
  /** The operations that requests were made of. */
  readonly asked: ReadonlySet<string>;
  /** By intent and status. */
  readonly statuses: ReadonlyMap<string, number>;
  /** Requests that were right in everything, and how many of them were done. */
  readonly right: { readonly sent: number; readonly done: number };
  readonly readBack: number;
  /** In sentences, each with the request that makes the service do so. */
  readonly complaints: readonly string[];
}

const ANSWER_MS_MAX = 15_000;
/** A stream has no end: its first bytes are enough. */
const STREAM_MS_MAX = 1_000;
const COMPLAINTS_MAX = 50;
/** Records that others hang on may be gone after so many requests; a new world is made when one is missed. */
const WORLD_REQUESTS_MIN = 200;
const MISSED_MIN = 100;
const MISSED_MAX = 0.2;
const OVERLOADED = /"status":"503"/;
/**
 * Asked for so much more seldom. To hash a password takes as much of the machine as a hundred requests; and of signing keys
 * there may be few.
 */
const COSTLY = /^(create|update|delete)-user-authentication-password-profile-info|^create-signing-key$/;
const COSTLY_SHARE = 0.1;

/** Sends requests of every operation of the service's own document, and holds every answer to it. */
export async function fireAt(target: Target, firing: Firing): Promise<Fired> {
  const document = (await (await fetch(`${target.url}/openapi.json`)).json()) as JsonObject;
  const operations = operationsOf(document);
  const front: Front = {
    target,
    operations,
    worlds: openWorlds({ ...target, document, operations }),
    finds: openFinds(),
    answers: openAnswers(document, operations),
    asked: new Set(),
    statuses: new Map(),
    complaints: [],
    right: { sent: 0, done: 0 },
    sent: 0,
    missed: 0,
    isStarved: false,
    readBack: 0,
    worldSince: 0,
  };
  const isOver = () => front.sent >= firing.requests || front.complaints.length >= COMPLAINTS_MAX;
  const { rest } = firing;
  const meeting = openMeeting(firing.atOnce, async () => rest?.during());
  const gunners = Array.from({ length: firing.atOnce }, async (_, index) => {
    const draw = drawOf(seededRandom(firing.seed + index));
    const start = performance.now();
    const restAt = start + (rest?.afterMs ?? Number.POSITIVE_INFINITY);
    let deadline = start + (firing.millisecondsMax ?? Number.POSITIVE_INFINITY);
    let hasRested = false;
    while (!isOver() && performance.now() < deadline) {
      const operation = draw.one(operations);
      if (COSTLY.test(operation.id) && !draw.happens(COSTLY_SHARE)) continue;
      const before = performance.now();
      if (!hasRested && before >= restAt) {
        hasRested = true;
        await meeting.come();
        deadline += performance.now() - before;
      }
      front.sent += 1;
      await fire(front, operation, draw);
    }
    if (!hasRested) meeting.stayAway();
  });
  await Promise.all(gunners);
  const { sent, asked, statuses, right, readBack, complaints } = front;
  return { sent, operations: operations.length, asked, statuses, right, readBack, complaints };
}

interface Front {
  readonly target: Target;
  readonly operations: readonly Operation[];
  readonly worlds: Worlds;
  readonly finds: Finds;
  readonly answers: ReturnType<typeof openAnswers>;
  readonly asked: Set<string>;
  readonly statuses: Map<string, number>;
  readonly complaints: string[];
  readonly right: { sent: number; done: number };
  sent: number;
  missed: number;
  isStarved: boolean;
  readBack: number;
  worldSince: number;
}

/** A request that is right could not be made, because what it needs is no longer there. That is the exception. */
function missed(front: Front, error: Error): void {
  front.missed += 1;
  const isStarved = front.missed > MISSED_MIN && front.missed > front.sent * MISSED_MAX;
  if (isStarved && !front.isStarved)
    front.complaints.push(`too often nothing right can be asked: ${error.message}`);
  front.isStarved ||= isStarved;
  // What is there and was refused for lack of time is asked for again.
  if (!OVERLOADED.test(error.message)) renewWorld(front, true);
}

/** Something that everything hangs on was removed or withdrawn, by what was sent. */
function renewWorld(front: Front, areClientsGone = false): void {
  if (front.sent - front.worldSince < WORLD_REQUESTS_MIN) return;
  front.worldSince = front.sent;
  front.worlds.renew(areClientsGone);
}

async function fire(front: Front, operation: Operation, draw: ReturnType<typeof drawOf>): Promise<void> {
  const { worlds, finds, answers, complaints } = front;
  let asked: Asked;
  try {
    const right = await (await worlds.current()).validRequest(operation);
    asked = await draftOf(operation, right, { draw, rights: worlds.rights, finds });
  } catch (error) {
    return missed(front, error as Error);
  }
  const received = await send(front.target.url, asked).catch((error: Error) => error);
  if (received instanceof Error) {
    complaints.push(`${operation.id} was not answered: ${received.message}\n${shown(asked)}`);
    return;
  }
  front.asked.add(operation.id);
  count(front, asked.intent, received.status);
  noteRight(front, asked, received);
  finds.hear(received.body, received.headers.get('etag'));
  const complain = (broken: string) =>
    complaints.push(`${broken}\n${shown(asked)}\n${received.text.slice(0, 500)}`);
  for (const broken of await answers.judge(asked, received)) complain(broken);
  if (received.status >= 300) return;
  try {
    for (const broken of await changedBy(front, asked, received)) complain(broken);
    const location = received.status === 201 ? received.headers.get('location') : null;
    if (location !== null) await worlds.made(location);
  } catch (error) {
    // The client that reads and removes what was made may itself have been removed.
    missed(front, error as Error);
  }
}

function count({ statuses }: Front, intent: Intent, status: number): void {
  const name = `${intent} ${status}`;
  statuses.set(name, (statuses.get(name) ?? 0) + 1);
}

function noteRight(
  front: Front,
  { intent, operation, headers, target }: Asked,
  { status }: OperationResponse,
): void {
  // A condition or a key that was added may be unmet.
  if (intent !== 'right' || 'If-Match' in headers || target.includes('after')) return;
  front.right.sent += 1;
  if (status === successOf(operation) || status === 304) front.right.done += 1;
  if (status === 404 || status === 401) renewWorld(front);
}

/** What was said and is not answered, right away or when the new record is read. */
async function changedBy(
  front: Front,
  asked: Asked,
  received: OperationResponse,
): Promise<readonly string[]> {
  const { said, operation, method, headers } = asked;
  const isWritten =
    method === operation.method.toUpperCase() && (method === 'PUT' || received.status === 201);
  if (said === undefined || !isWritten) return [];
  const at = (name: string) => `${operation.id} ${received.status}: ${name} is not what was sent`;
  const wrong = changedMembers(said, received.body).map(at);
  const location = received.headers.get('location');
  if (location === null || wrong.length > 0) return wrong;
  const authorization = { Authorization: `Bearer ${await front.worlds.rights.ofAll()}` };
  const read = await fetch(location, { headers: authorization });
  const text = await read.text();
  // Something else that was sent has ended this token meanwhile.
  if (read.status === 401) {
    renewWorld(front);
    return [];
  }
  front.readBack += 1;
  const isChanged =
    read.status === 200
      ? !isAsMade(text, received.text)
      : read.status !== 404 && !('Idempotency-Key' in headers);
  return isChanged ? [`${operation.id}: what was made is read as ${read.status} ${text.slice(0, 500)}`] : [];
}

/** Whether what is read says what the answer that made it said: that one may say more, such as a secret, once. */
function isAsMade(read: string, made: string): boolean {
  if (read === made) return true;
  const [now, then] = [read, made].map((text) => JSON.parse(text) as Body) as [Body, Body];
  return Object.entries(now.data).every(([name, value]) => Bun.deepEquals(value, then.data[name]));
}

interface Body {
  readonly data: Readonly<Record<string, unknown>>;
}

/** Sends a request. Rejects where it is not answered. */
async function send(url: string, { method, target, headers, body }: Asked): Promise<OperationResponse> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error('no answer in time')), ANSWER_MS_MAX);
  try {
    const answer = await fetch(url + target, {
      method,
      headers,
      redirect: 'manual',
      signal: controller.signal,
      ...(body === undefined ? {} : { body }),
    });
    const type = answer.headers.get('content-type') ?? '';
    const text = type.startsWith('text/event-stream') ? await firstOf(answer) : await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: parsed(type, text) };
  } finally {
    clearTimeout(timer);
  }
}

async function firstOf(answer: Response): Promise<string> {
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const first = await Promise.race([reader.read(), Bun.sleep(STREAM_MS_MAX)]);
  await reader.cancel().catch(() => undefined);
  return new TextDecoder().decode(first?.value);
}

function parsed(type: string, text: string): Json | undefined {
  if (text === '' || !/\bjson$/.test(type)) return undefined;
  return JSON.parse(text) as Json;
}

/** A request as somebody can send it again. */
function shown({ intent, method, target, headers, body }: Asked): string {
  const text = body instanceof Uint8Array ? `bytes ${Buffer.from(body).toString('base64')}` : (body ?? '');
  return `${intent} ${method} ${target} ${JSON.stringify(headers)} ${text.slice(0, 2_000)}`;
}
