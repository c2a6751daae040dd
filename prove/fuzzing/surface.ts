import {
  type Operation,
  openCaller,
  operationsOf,
  type Received,
  successOf,
} from '../../test/document_caller.ts';
import { openWorld, type World } from '../../test/document_world.ts';
import type { Json, JsonObject } from '../../test/json_schema.ts';
import { chanceOf } from '../chance.ts';
import { changedMembers, openAnswers } from './answers.ts';
import { drawOf } from './draw.ts';
import { type Finds, openFinds } from './finds.ts';
import { type Asked, draftOf, type Intent } from './requests.ts';
import { type Credentials, openRights, type Rights } from './rights.ts';

/** A service under fire. */
export interface Target {
  readonly url: string;
  readonly credentials: Credentials;
}

export interface Firing {
  readonly seed: number;
  readonly requests: number;
  /** Ends before all requests are sent once so much time is over. */
  readonly millisecondsMax?: number;
  readonly atOnce: number;
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
const WORLD_MS_MAX = 30_000;
const WORLD_PAUSE_MS = 300;
const MADE_MAX = 200;
const MISSED_MIN = 100;
const MISSED_MAX = 0.2;

/** Sends requests of every operation of the service's own document, and holds every answer to it. */
export async function fireAt(target: Target, firing: Firing): Promise<Fired> {
  const document = (await (await fetch(`${target.url}/openapi.json`)).json()) as JsonObject;
  const operations = operationsOf(document);
  const credentials = remembered(target.credentials);
  const front: Front = {
    target,
    document,
    operations,
    rights: openRights(target.url, credentials, operations),
    credentials,
    finds: openFinds(),
    answers: openAnswers(document, operations),
    asked: new Set(),
    statuses: new Map(),
    complaints: [],
    made: [],
    right: { sent: 0, done: 0 },
    sent: 0,
    missed: 0,
    isStarved: false,
    readBack: 0,
    world: undefined,
    worldSince: 0,
  };
  const deadline = performance.now() + (firing.millisecondsMax ?? Number.POSITIVE_INFINITY);
  const isOver = () =>
    front.sent >= firing.requests ||
    performance.now() > deadline ||
    front.complaints.length >= COMPLAINTS_MAX;
  const gunners = Array.from({ length: firing.atOnce }, async (_, index) => {
    const draw = drawOf(chanceOf(firing.seed + index));
    while (!isOver()) {
      front.sent += 1;
      await fire(front, draw.one(operations), draw);
    }
  });
  await Promise.all(gunners);
  const { sent, asked, statuses, right, readBack, complaints } = front;
  return { sent, operations: operations.length, asked, statuses, right, readBack, complaints };
}

interface Front {
  readonly target: Target;
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  readonly rights: Rights;
  readonly credentials: Credentials;
  readonly finds: Finds;
  readonly answers: ReturnType<typeof openAnswers>;
  readonly asked: Set<string>;
  readonly statuses: Map<string, number>;
  readonly complaints: string[];
  /** Addresses of records. */
  readonly made: string[];
  readonly right: { sent: number; done: number };
  sent: number;
  missed: number;
  isStarved: boolean;
  readBack: number;
  world: Promise<World> | undefined;
  worldSince: number;
}

/** To make a client takes a process: one for each set of rights is enough. */
function remembered(credentials: Credentials): Credentials {
  const known = new Map<string, ReturnType<Credentials>>();
  return (scope, realms) => {
    const name = `${scope} ${realms?.join(' ')}`;
    const made = known.get(name) ?? credentials(scope, realms);
    known.set(name, made);
    return made;
  };
}

function worldOf(front: Front): Promise<World> {
  front.world ??= makeWorld(front);
  return front.world;
}

/** A service that has too much to do refuses what hashes a password: then it is asked again. */
async function makeWorld({ document, operations, credentials }: Front): Promise<World> {
  const deadline = performance.now() + WORLD_MS_MAX;
  for (;;) {
    try {
      return await openWorld({ document, operations, caller: openCaller(document), credentials });
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await Bun.sleep(WORLD_PAUSE_MS);
    }
  }
}

/** A request that is right could not be made, because what it needs is no longer there. That is the exception. */
function missed(front: Front, error: Error): void {
  front.missed += 1;
  const isStarved = front.missed > MISSED_MIN && front.missed > front.sent * MISSED_MAX;
  if (isStarved && !front.isStarved)
    front.complaints.push(`too often nothing right can be asked: ${error.message}`);
  front.isStarved ||= isStarved;
  renewWorld(front);
}

/** Something that everything hangs on was removed or withdrawn, by what was sent. */
function renewWorld(front: Front): void {
  if (front.sent - front.worldSince < WORLD_REQUESTS_MIN) return;
  front.worldSince = front.sent;
  front.world = undefined;
  front.rights.renew();
}

async function fire(front: Front, operation: Operation, draw: ReturnType<typeof drawOf>): Promise<void> {
  const { rights, finds, answers, complaints } = front;
  let asked: Asked;
  try {
    const right = await (await worldOf(front)).right(operation);
    asked = await draftOf(operation, right, { draw, rights, finds });
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
  const broken = await answers.judge(asked, received);
  const changed = received.status < 300 ? await changedBy(front, asked, received) : [];
  await clear(front, received);
  for (const complaint of [...broken, ...changed])
    complaints.push(`${complaint}\n${shown(asked)}\n${received.text.slice(0, 500)}`);
}

function count({ statuses }: Front, intent: Intent, status: number): void {
  const name = `${intent} ${status}`;
  statuses.set(name, (statuses.get(name) ?? 0) + 1);
}

function noteRight(front: Front, { intent, operation, headers, target }: Asked, { status }: Received): void {
  // A condition or a key that was added may be unmet.
  if (intent !== 'right' || 'If-Match' in headers || target.includes('after')) return;
  front.right.sent += 1;
  if (status === successOf(operation) || status === 304) front.right.done += 1;
  if (status === 404 || status === 401) renewWorld(front);
}

/** What was said and is not answered, right away or when the new record is read. */
async function changedBy(front: Front, asked: Asked, received: Received): Promise<readonly string[]> {
  const { said, operation, method, headers } = asked;
  const isWritten =
    method === operation.method.toUpperCase() && (method === 'PUT' || received.status === 201);
  if (said === undefined || !isWritten) return [];
  const at = (name: string) => `${operation.id} ${received.status}: ${name} is not what was sent`;
  const wrong = changedMembers(said, received.body).map(at);
  const location = received.headers.get('location');
  if (location === null || wrong.length > 0) return wrong;
  const authorization = { Authorization: `Bearer ${await front.rights.ofAll()}` };
  const read = await fetch(location, { headers: authorization });
  const text = await read.text();
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

/** Removes the oldest of what was made, so that there is always as much of it. */
async function clear({ made, rights }: Front, { status, headers }: Received): Promise<void> {
  const location = headers.get('location');
  if (status === 201 && location !== null) made.push(location);
  const oldest = made.length > MADE_MAX ? made.shift() : undefined;
  if (oldest === undefined) return;
  const authorization = { Authorization: `Bearer ${await rights.ofAll()}` };
  await (await fetch(oldest, { method: 'DELETE', headers: authorization })).text();
}

/** Sends a request. Rejects where it is not answered. */
async function send(url: string, { method, target, headers, body }: Asked): Promise<Received> {
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
