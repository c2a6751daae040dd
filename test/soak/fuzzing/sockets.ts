import { LIMITS } from '../../../src/domain/limits.ts';
import { user } from '../../../src/domain/resources.ts';
import { type ProcessUsage, usageOf } from '../../support/process_tree.ts';
import { seededRandom } from '../../support/random.ts';
import { exchangeBytes, getRequest, type RawResponse } from '../../support/raw_http.ts';
import { createParents, createRecord, FULL_SCOPE, kindOf } from '../../support/resource_cases.ts';
import type { ServiceProcess } from '../../support/service_process.ts';
import { type Conversation, drawnConversation, type Speaker } from './conversations.ts';
import { drawOf } from './draw.ts';

export const SOCKET_SCOPE = FULL_SCOPE;

export interface Storm {
  readonly seed: number;
  /** Of each of the two halves. */
  readonly connections: number;
  readonly atOnce: number;
  /** Connections that say a byte now and then, and how long that goes on. */
  readonly slow: number;
  readonly slowMs: number;
  /** What a lookup may take longer than usual, whatever else the machine has to do. */
  readonly slowerMsMax: number;
}

export interface Weathered {
  readonly kinds: ReadonlyMap<string, number>;
  readonly answers: ReadonlyMap<number, number>;
  /** Medians of a lookup: before, beside slow connections, and after everything. */
  readonly usualMs: number;
  readonly besideSlowMs: number;
  readonly afterMs: number;
  /** After each half. */
  readonly vitals: readonly [ProcessUsage, ProcessUsage];
  readonly complaints: readonly string[];
}

const USERS = 20;
const LOOKS = 100;
const COMPLAINTS_MAX = 50;
/** How many times as long as usual a lookup may take. */
const SLOWER_MAX = 3;
const DESCRIPTORS_MORE_MAX = 3;
/** The runtime gives a header 10 seconds and looks every 4; a body has LIMITS.bodyMsMax. */
const HEADER_MS_MAX = 14_500;

/** Connections of every kind speak to a service at once. Afterwards it is what it was. */
export async function weather(served: ServiceProcess, storm: Storm): Promise<Weathered> {
  const speakers = await speakersOf(served);
  const complaints: string[] = [];
  const complain = (what: string) => void (complaints.length < COMPLAINTS_MAX && complaints.push(what));
  const kinds = new Map<string, number>();
  const answers = new Map<number, number>();
  const count = <K>(of: Map<K, number>, name: K) => of.set(name, (of.get(name) ?? 0) + 1);
  const pid = served.running.process.pid;
  let named = 0;

  async function half(seed: number): Promise<ProcessUsage> {
    let left = storm.connections;
    const talkers = Array.from({ length: storm.atOnce }, async (_, index) => {
      const draw = drawOf(seededRandom(seed + index));
      while (left > 0) {
        left -= 1;
        named += 1;
        const speaker = { ...draw.one(speakers), name: `c${named}` };
        const conversation = drawnConversation(speaker, draw);
        const heard = await exchangeBytes(served.url, conversation.bytes, conversation.asking);
        count(kinds, conversation.kind);
        for (const { status } of heard.responses) count(answers, status);
        for (const wrong of wrongOf(conversation, speaker, heard.responses)) {
          complain(
            `${conversation.kind}: ${wrong}\n${JSON.stringify(conversation.bytes.slice(0, 3_000))}\n${JSON.stringify(heard.responses.slice(0, 5))}`,
          );
        }
      }
    });
    await Promise.all(talkers);
    return settled(pid);
  }

  await lookMs(served, speakers, complain);
  const usualMs = await lookMs(served, speakers, complain);
  const first = await half(storm.seed);
  const besideSlowMs = await besideSlow(served, speakers, storm, complain);
  const second = await half(storm.seed + storm.atOnce);
  const afterMs = await lookMs(served, speakers, complain);
  const bound = Math.max(usualMs * SLOWER_MAX, usualMs + storm.slowerMsMax);
  if (besideSlowMs > bound)
    complain(`beside slow connections a lookup took ${besideSlowMs} ms instead of ${usualMs} ms`);
  if (afterMs > bound) complain(`afterwards a lookup took ${afterMs} ms instead of ${usualMs} ms`);
  if (second.descriptors > first.descriptors + DESCRIPTORS_MORE_MAX)
    complain(
      `${second.descriptors} file descriptors after the second half, ${first.descriptors} after the first`,
    );
  return { kinds, answers, usualMs, besideSlowMs, afterMs, vitals: [first, second], complaints };
}

/** Users, each of whom is asked for by connections of its own. */
async function speakersOf(served: ServiceProcess): Promise<readonly Speaker[]> {
  const token = await served.token();
  const home = await createParents(served, token);
  const made = await Promise.all(
    Array.from({ length: USERS }, () => createRecord(served, token, { kind: kindOf(user), home })),
  );
  return made.map(({ path }) => ({ name: '', path, token }));
}

/** The median of one lookup after the other, over connections of their own. */
async function lookMs(
  served: ServiceProcess,
  speakers: readonly Speaker[],
  complain: (what: string) => void,
): Promise<number> {
  const taken: number[] = [];
  for (let look = 0; look < LOOKS; look += 1) {
    const { path, token } = speakers[look % speakers.length] as Speaker;
    const start = performance.now();
    const answer = await served.get(path, token);
    const body = await answer.text();
    taken.push(performance.now() - start);
    if (answer.status !== 200 || !body.includes(path.slice(-36)))
      complain(`a lookup was answered ${answer.status} ${body}`);
  }
  return taken.sort((one, other) => one - other)[Math.floor(LOOKS / 2)] ?? 0;
}

/** Once the connections that were left behind are closed. */
async function settled(pid: number): Promise<ProcessUsage> {
  let vitals = usageOf(pid);
  for (let polls = 0; polls < 50; polls += 1) {
    await Bun.sleep(100);
    const now = usageOf(pid);
    if (now.descriptors >= vitals.descriptors) return now;
    vitals = now;
  }
  return vitals;
}

const OF_RUNTIME: ReadonlySet<number> = new Set([100, 400, 431, 505]);

/** What of the answers on a connection is not its own, or is nothing that this service says. */
function wrongOf(
  { ids, kind, bytes }: Conversation,
  { path }: Speaker,
  answers: readonly RawResponse[],
): readonly string[] {
  let next = 0;
  return answers.flatMap((answer) => {
    const id = answer.headers.get('x-request-id');
    const at = id === null ? -1 : ids.indexOf(id, next);
    if (at >= 0) next = at + 1;
    // What was scrambled may have another ID, or none; then it has one that the service minted.
    const isOther = id !== null && kind === 'scrambled' && bytes.includes(id);
    const isForeign = id !== null && at < 0 && !isOther && !MINTED.test(id);
    return [...(isForeign ? [`the answer is for ${id}`] : []), ...unfit(answer, path)];
  });
}

const MINTED = /^[0-9a-f]{20}-/;

function unfit({ status, headers, body }: RawResponse, path: string): readonly string[] {
  const isBare = !headers.has('x-request-id');
  const isOwn = body.includes(path.slice(-36)) || body === '{"status":"ok"}';
  return [
    ...(status >= 500 && status !== 505 ? [`answered ${status}`] : []),
    ...(isBare && !(OF_RUNTIME.has(status) && body === '') ? [`${status} without a request ID`] : []),
    ...(status === 200 && !isOwn ? [`it holds another record: ${body.slice(0, 200)}`] : []),
  ];
}

/** Half of them never end their header, half never their body; meanwhile everybody else is answered as ever. */
async function besideSlow(
  served: ServiceProcess,
  speakers: readonly Speaker[],
  { slow, slowMs }: Storm,
  complain: (what: string) => void,
): Promise<number> {
  const header = `${getRequest('/healthz').slice(0, -2)}X: `;
  const body = 'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n';
  const talks = Array.from({ length: slow }, (_, at) =>
    exchangeBytes(served.url, at % 2 === 0 ? header : body, { drip: 'x', timeoutMs: slowMs }),
  );
  await Bun.sleep(Math.min(500, slowMs / 2));
  const ms = await lookMs(served, speakers, complain);
  for (const [at, { responses, isEnded }] of (await Promise.all(talks)).entries()) {
    const statuses = responses.map(({ status }) => status).join();
    if (at % 2 === 0 && (statuses !== '' || (slowMs >= HEADER_MS_MAX && !isEnded)))
      complain(`a header that never ends was answered with ${statuses}, ended ${isEnded}`);
    if (at % 2 === 1 && statuses !== (slowMs > LIMITS.answerMsMax ? '408' : ''))
      complain(`a body that never ends was answered with ${statuses}`);
  }
  return ms;
}
