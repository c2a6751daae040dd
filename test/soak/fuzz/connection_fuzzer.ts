import { LIMITS } from '../../../src/model/limits.ts';
import { user } from '../../../src/model/resources.ts';
import { type ResourceUsage, resourcesOf } from '../../support/process_tree.ts';
import { seededRandom } from '../../support/random.ts';
import { exchangeBytes, getRequest, type RawResponse } from '../../support/raw_http.ts';
import { createParents, createRecord, FULL_SCOPE, kindOf } from '../../support/resource_cases.ts';
import type { ServiceProcess } from '../../support/service_process.ts';
import { drawOf } from './draw.ts';
import { drawRawExchange, type RawClient, type RawExchange } from './raw_exchanges.ts';

export const SOCKET_SCOPE = FULL_SCOPE;

export interface ConnectionPlan {
  readonly seed: number;
  /** In each of the two halves. */
  readonly connections: number;
  readonly concurrency: number;
  /** Connections that send a byte now and then, and for how long. */
  readonly slow: number;
  readonly slowMs: number;
  /** Slowdown of a lookup that is allowed in any case, because the machine may be busy. */
  readonly slowerMsMax: number;
}

export interface ConnectionReport {
  readonly kinds: ReadonlyMap<string, number>;
  readonly answers: ReadonlyMap<number, number>;
  /** Median lookup times: before, during slow connections, and after everything. */
  readonly baselineMs: number;
  readonly duringSlowMs: number;
  readonly afterMs: number;
  /** After each half. */
  readonly usage: readonly [ResourceUsage, ResourceUsage];
  readonly complaints: readonly string[];
}

const USERS = 20;
const LOOKUPS = 100;
const COMPLAINTS_MAX = 50;
/** Allowed slowdown of a lookup, as a factor. */
const SLOWER_MAX = 3;
const DESCRIPTORS_MORE_MAX = 3;
/** The runtime closes after 10 seconds without a whole header and checks every 4; a body has LIMITS.bodyMsMax. */
const HEADER_MS_MAX = 14_500;

/** Opens connections of every kind concurrently; the service must be as fast and hold as few descriptors afterwards. */
export async function fuzzConnections(
  served: ServiceProcess,
  plan: ConnectionPlan,
): Promise<ConnectionReport> {
  const clients = await createClients(served);
  const complaints: string[] = [];
  const complain = (what: string) => void (complaints.length < COMPLAINTS_MAX && complaints.push(what));
  const kinds = new Map<string, number>();
  const answers = new Map<number, number>();
  const count = <K>(of: Map<K, number>, name: K) => of.set(name, (of.get(name) ?? 0) + 1);
  const pid = served.running.process.pid;
  let clientCount = 0;

  async function half(seed: number): Promise<ResourceUsage> {
    let left = plan.connections;
    const workers = Array.from({ length: plan.concurrency }, async (_, index) => {
      const draw = drawOf(seededRandom(seed + index));
      while (left > 0) {
        left -= 1;
        clientCount += 1;
        const client = { ...draw.one(clients), name: `c${clientCount}` };
        const exchange = drawRawExchange(client, draw);
        const received = await exchangeBytes(served.url, exchange.bytes, exchange.options);
        count(kinds, exchange.kind);
        for (const { status } of received.responses) count(answers, status);
        for (const error of responseErrors(exchange, client, received.responses)) {
          complain(
            `${exchange.kind}: ${error}\n${JSON.stringify(exchange.bytes.slice(0, 3_000))}\n${JSON.stringify(received.responses.slice(0, 5))}`,
          );
        }
      }
    });
    await Promise.all(workers);
    return settledUsage(pid);
  }

  await medianLookupMs(served, clients, complain);
  const baselineMs = await medianLookupMs(served, clients, complain);
  const first = await half(plan.seed);
  const duringSlowMs = await lookupDuringSlow(served, clients, plan, complain);
  const second = await half(plan.seed + plan.concurrency);
  const afterMs = await medianLookupMs(served, clients, complain);
  const bound = Math.max(baselineMs * SLOWER_MAX, baselineMs + plan.slowerMsMax);
  if (duringSlowMs > bound)
    complain(`during slow connections a lookup took ${duringSlowMs} ms instead of ${baselineMs} ms`);
  if (afterMs > bound) complain(`afterwards a lookup took ${afterMs} ms instead of ${baselineMs} ms`);
  if (second.descriptors > first.descriptors + DESCRIPTORS_MORE_MAX)
    complain(
      `${second.descriptors} file descriptors after the second half, ${first.descriptors} after the first`,
    );
  return { kinds, answers, baselineMs, duringSlowMs, afterMs, usage: [first, second], complaints };
}

/** Users, each read by connections of its own. */
async function createClients(served: ServiceProcess): Promise<readonly RawClient[]> {
  const token = await served.token();
  const home = await createParents(served, token);
  const users = await Promise.all(
    Array.from({ length: USERS }, () => createRecord(served, token, { kind: kindOf(user), home })),
  );
  return users.map(({ path }) => ({ name: '', path, token }));
}

/** The median of sequential lookups, each on a connection of its own. */
async function medianLookupMs(
  served: ServiceProcess,
  clients: readonly RawClient[],
  complain: (what: string) => void,
): Promise<number> {
  const durations: number[] = [];
  for (let index = 0; index < LOOKUPS; index += 1) {
    const { path, token } = clients[index % clients.length] as RawClient;
    const start = performance.now();
    const answer = await served.get(path, token);
    const body = await answer.text();
    durations.push(performance.now() - start);
    if (answer.status !== 200 || !body.includes(path.slice(-36)))
      complain(`a lookup returned ${answer.status} ${body}`);
  }
  return durations.sort((one, other) => one - other)[Math.floor(LOOKUPS / 2)] ?? 0;
}

/** The usage once abandoned connections are closed. */
async function settledUsage(pid: number): Promise<ResourceUsage> {
  let usage = resourcesOf(pid);
  for (let polls = 0; polls < 50; polls += 1) {
    await Bun.sleep(100);
    const now = resourcesOf(pid);
    if (now.descriptors >= usage.descriptors) return now;
    usage = now;
  }
  return usage;
}

const RUNTIME_STATUSES: ReadonlySet<number> = new Set([100, 400, 431, 505]);

/** Responses on a connection that belong to another request, or that the service should never send. */
function responseErrors(
  { ids, kind, bytes }: RawExchange,
  { path }: RawClient,
  answers: readonly RawResponse[],
): readonly string[] {
  let next = 0;
  return answers.flatMap((answer) => {
    const id = answer.headers.get('x-request-id');
    const at = id === null ? -1 : ids.indexOf(id, next);
    if (at >= 0) next = at + 1;
    // A corrupted request may carry another ID, or none; then the service generates one.
    const isOther = id !== null && kind === 'corrupted' && bytes.includes(id);
    const isForeign = id !== null && at < 0 && !isOther && !SERVICE_REQUEST_ID.test(id);
    return [...(isForeign ? [`the answer is for ${id}`] : []), ...statusErrors(answer, path)];
  });
}

const SERVICE_REQUEST_ID = /^[0-9a-f]{20}-/;

function statusErrors({ status, headers, body }: RawResponse, path: string): readonly string[] {
  const isBare = !headers.has('x-request-id');
  const isOwn = body.includes(path.slice(-36)) || body === '{"status":"ok"}';
  return [
    ...(status >= 500 && status !== 505 ? [`returned ${status}`] : []),
    ...(isBare && !(RUNTIME_STATUSES.has(status) && body === '') ? [`${status} without a request ID`] : []),
    ...(status === 200 && !isOwn ? [`returned another record: ${body.slice(0, 200)}`] : []),
  ];
}

/** Half of the slow connections never end their header, half never their body; other lookups must stay fast. */
async function lookupDuringSlow(
  served: ServiceProcess,
  clients: readonly RawClient[],
  { slow, slowMs }: ConnectionPlan,
  complain: (what: string) => void,
): Promise<number> {
  const header = `${getRequest('/healthz').slice(0, -2)}X: `;
  const body = 'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n';
  const exchanges = Array.from({ length: slow }, (_, at) =>
    exchangeBytes(served.url, at % 2 === 0 ? header : body, { drip: 'x', timeoutMs: slowMs }),
  );
  await Bun.sleep(Math.min(500, slowMs / 2));
  const ms = await medianLookupMs(served, clients, complain);
  for (const [at, { responses, isEnded }] of (await Promise.all(exchanges)).entries()) {
    const statuses = responses.map(({ status }) => status).join();
    if (at % 2 === 0 && (statuses !== '' || (slowMs >= HEADER_MS_MAX && !isEnded)))
      complain(`an unfinished header was answered with ${statuses}, connection closed: ${isEnded}`);
    if (at % 2 === 1 && statuses !== (slowMs > LIMITS.answerMsMax ? '408' : ''))
      complain(`an unfinished body was answered with ${statuses}`);
  }
  return ms;
}
