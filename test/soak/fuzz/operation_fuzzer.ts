import type { Json, JsonObject } from '../../support/json_schema.ts';
import {
  type Operation,
  type OperationResponse,
  operationsOf,
  successOf,
} from '../../support/openapi_client.ts';
import { seededRandom } from '../../support/random.ts';
import type { Credentials } from './access_tokens.ts';
import { openBarrier } from './barrier.ts';
import { drawOf } from './draw.ts';
import { type FixturePool, openFixturePool } from './fixture_pool.ts';
import { drawRequest, type FuzzRequest, type Intent } from './fuzz_request.ts';
import { type ObservedValues, openObservedValues } from './observed_values.ts';
import { changedMembers, openFuzzResponseCheck } from './response_check.ts';

/** The service to fuzz. */
export interface Target {
  readonly url: string;
  readonly credentials: Credentials;
  /** A body that signs in an account member. */
  readonly signIn: Json;
}

export interface FuzzPlan {
  readonly seed: number;
  readonly requests: number;
  /** Stops after this time at the latest, not counting the pause. */
  readonly millisecondsMax?: number;
  readonly concurrency: number;
  readonly pause?: Pause;
}

/**
 * After this time all workers stop sending; once no request is in flight, `action` runs, and then they continue. Skipped
 * when the run ends earlier.
 */
export interface Pause {
  readonly afterMs: number;
  readonly action: () => Promise<void>;
}

export interface FuzzReport {
  readonly sent: number;
  readonly operations: number;
  /** IDs of the operations that requests were made from. */
  readonly operationsSent: ReadonlySet<string>;
  /** By intent and status. */
  readonly statuses: ReadonlyMap<string, number>;
  /** Valid requests, and how many of them succeeded. Leaves out those of the console's pages, which need a session. */
  readonly valid: { readonly sent: number; readonly succeeded: number };
  readonly readBack: number;
  /** In sentences, each with the request that reproduces it. */
  readonly complaints: readonly string[];
}

const ANSWER_MS_MAX = 15_000;
/** A stream does not end: the first chunk is enough. */
const STREAM_MS_MAX = 1_000;
const COMPLAINTS_MAX = 50;
/** Requests may delete the parents of other records: fixtures are created again, at most once per so many requests. */
const RENEWAL_REQUESTS_MIN = 200;
const MISSING_MIN = 100;
const MISSING_SHARE_MAX = 0.2;
const CURSOR = /[?&](page%5Bafter%5D|after|before)=/;
const OVERLOADED = /"status":"503"/;
/**
 * Operations that are sent less often: hashing a password costs as much as a hundred requests, and the number of signing keys
 * is limited.
 */
const COSTLY = /^(create|update|delete)-user-authentication-password-profile-info|^create-signing-key$/;
const COSTLY_SHARE = 0.1;

/** Sends requests of every operation of the service's OpenAPI document, and checks every response against it. */
export async function fuzzOperations(target: Target, plan: FuzzPlan): Promise<FuzzReport> {
  const document = (await (await fetch(`${target.url}/openapi.json`)).json()) as JsonObject;
  const operations = operationsOf(document);
  const state: FuzzState = {
    target,
    operations,
    fixtures: openFixturePool({ ...target, document, operations }),
    observed: openObservedValues(),
    responseCheck: openFuzzResponseCheck(document, operations),
    operationsSent: new Set(),
    statuses: new Map(),
    complaints: [],
    valid: { sent: 0, succeeded: 0 },
    sent: 0,
    missingFixtures: 0,
    isFixturePoolEmpty: false,
    readBack: 0,
    fixturesSince: 0,
  };
  const isOver = () => state.sent >= plan.requests || state.complaints.length >= COMPLAINTS_MAX;
  const { pause } = plan;
  const barrier = openBarrier(plan.concurrency, async () => pause?.action());
  const workers = Array.from({ length: plan.concurrency }, async (_, index) => {
    const draw = drawOf(seededRandom(plan.seed + index));
    const start = performance.now();
    const pauseAt = start + (pause?.afterMs ?? Number.POSITIVE_INFINITY);
    let deadline = start + (plan.millisecondsMax ?? Number.POSITIVE_INFINITY);
    let hasPaused = false;
    while (!isOver() && performance.now() < deadline) {
      const operation = draw.one(operations);
      if (COSTLY.test(operation.id) && !draw.happens(COSTLY_SHARE)) continue;
      const before = performance.now();
      if (!hasPaused && before >= pauseAt) {
        hasPaused = true;
        await barrier.arrive();
        deadline += performance.now() - before;
      }
      state.sent += 1;
      await sendOne(state, operation, draw);
    }
    if (!hasPaused) barrier.leave();
  });
  await Promise.all(workers);
  const { sent, operationsSent, statuses, valid, readBack, complaints } = state;
  return { sent, operations: operations.length, operationsSent, statuses, valid, readBack, complaints };
}

interface FuzzState {
  readonly target: Target;
  readonly operations: readonly Operation[];
  readonly fixtures: FixturePool;
  readonly observed: ObservedValues;
  readonly responseCheck: ReturnType<typeof openFuzzResponseCheck>;
  readonly operationsSent: Set<string>;
  readonly statuses: Map<string, number>;
  readonly complaints: string[];
  readonly valid: { sent: number; succeeded: number };
  sent: number;
  missingFixtures: number;
  isFixturePoolEmpty: boolean;
  readBack: number;
  fixturesSince: number;
}

/** A valid request could not be made because its fixtures are gone. This must stay rare. */
function noteMissingFixture(state: FuzzState, error: Error): void {
  state.missingFixtures += 1;
  const isFixturePoolEmpty =
    state.missingFixtures > MISSING_MIN && state.missingFixtures > state.sent * MISSING_SHARE_MAX;
  if (isFixturePoolEmpty && !state.isFixturePoolEmpty)
    state.complaints.push(`valid requests can too rarely be made: ${error.message}`);
  state.isFixturePoolEmpty ||= isFixturePoolEmpty;
  // A 503 says nothing about the fixtures.
  if (!OVERLOADED.test(error.message)) renewFixtures(state, true);
}

/** A request removed a parent record or withdrew a key. */
function renewFixtures(state: FuzzState, areClientsGone = false): void {
  if (state.sent - state.fixturesSince < RENEWAL_REQUESTS_MIN) return;
  state.fixturesSince = state.sent;
  state.fixtures.renew(areClientsGone);
}

async function sendOne(
  state: FuzzState,
  operation: Operation,
  draw: ReturnType<typeof drawOf>,
): Promise<void> {
  const { fixtures, observed, responseCheck, complaints } = state;
  let request: FuzzRequest;
  try {
    const valid = await (await fixtures.current()).validRequest(operation);
    request = await drawRequest(operation, valid, { draw, accessTokens: fixtures.accessTokens, observed });
  } catch (error) {
    return noteMissingFixture(state, error as Error);
  }
  const received = await send(state.target.url, request).catch((error: Error) => error);
  if (received instanceof Error) {
    complaints.push(`${operation.id} got no response: ${received.message}\n${describeRequest(request)}`);
    return;
  }
  state.operationsSent.add(operation.id);
  count(state, request.intent, received.status);
  countValid(state, request, received);
  observed.record(received.body, received.headers.get('etag'));
  const complain = (violation: string) =>
    complaints.push(`${violation}\n${describeRequest(request)}\n${received.text.slice(0, 500)}`);
  for (const violation of await responseCheck.check(request, received)) complain(violation);
  if (received.status >= 300) return;
  try {
    for (const violation of await readBackErrors(state, request, received)) complain(violation);
    const location = received.status === 201 ? received.headers.get('location') : null;
    if (location !== null) await fixtures.created(location);
  } catch (error) {
    // The client that reads and deletes records may itself have been deleted.
    noteMissingFixture(state, error as Error);
  }
}

function count({ statuses }: FuzzState, intent: Intent, status: number): void {
  const name = `${intent} ${status}`;
  statuses.set(name, (statuses.get(name) ?? 0) + 1);
}

function countValid(
  state: FuzzState,
  { intent, operation, headers, target }: FuzzRequest,
  { status }: OperationResponse,
): void {
  // An added condition or cursor may be unmet. Operations that require Origin need a session of the console, which there is none of.
  if (intent !== 'valid' || 'If-Match' in headers || 'Origin' in headers || CURSOR.test(target)) return;
  state.valid.sent += 1;
  if (status === successOf(operation) || status === 304) state.valid.succeeded += 1;
  if (status === 404 || status === 401) renewFixtures(state);
}

/** Differences between the sent body and the response, or the record as it is read afterwards. */
async function readBackErrors(
  state: FuzzState,
  request: FuzzRequest,
  received: OperationResponse,
): Promise<readonly string[]> {
  const { json, operation, method, headers } = request;
  const isWritten =
    method === operation.method.toUpperCase() && (method === 'PUT' || received.status === 201);
  if (json === undefined || !isWritten) return [];
  const at = (name: string) => `${operation.id} ${received.status}: ${name} is not what was sent`;
  const changed = changedMembers(json, received.body).map(at);
  const location = received.headers.get('location');
  if (location === null || changed.length > 0) return changed;
  const authorization = { Authorization: `Bearer ${await state.fixtures.accessTokens.valid()}` };
  const read = await fetch(location, { headers: authorization });
  const text = await read.text();
  // Another request has revoked this token meanwhile.
  if (read.status === 401) {
    renewFixtures(state);
    return [];
  }
  state.readBack += 1;
  const isChanged =
    read.status === 200
      ? !isSameRecord(text, received.text)
      : read.status !== 404 && !('Idempotency-Key' in headers);
  return isChanged ? [`${operation.id}: the new record is read as ${read.status} ${text.slice(0, 500)}`] : [];
}

/** Whether a record is read as it was created. The response to the create may have more members, such as a secret. */
function isSameRecord(read: string, created: string): boolean {
  if (read === created) return true;
  const [now, then] = [read, created].map((text) => JSON.parse(text) as Body) as [Body, Body];
  return Object.entries(now.data).every(([name, value]) => Bun.deepEquals(value, then.data[name]));
}

interface Body {
  readonly data: Readonly<Record<string, unknown>>;
}

/** Rejects when no response arrives in time. */
async function send(url: string, { method, target, headers, body }: FuzzRequest): Promise<OperationResponse> {
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
    const text = type.startsWith('text/event-stream') ? await firstChunk(answer) : await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: parsed(type, text) };
  } finally {
    clearTimeout(timer);
  }
}

async function firstChunk(answer: Response): Promise<string> {
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const first = await Promise.race([reader.read(), Bun.sleep(STREAM_MS_MAX)]);
  await reader.cancel().catch(() => undefined);
  return new TextDecoder().decode(first?.value);
}

function parsed(type: string, text: string): Json | undefined {
  if (text === '' || !/\bjson$/.test(type)) return undefined;
  return JSON.parse(text) as Json;
}

/** The request with all that is needed to send it again. */
function describeRequest({ intent, method, target, headers, body }: FuzzRequest): string {
  const text = body instanceof Uint8Array ? `bytes ${Buffer.from(body).toString('base64')}` : (body ?? '');
  return `${intent} ${method} ${target} ${JSON.stringify(headers)} ${text.slice(0, 2_000)}`;
}
