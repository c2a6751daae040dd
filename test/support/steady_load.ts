import { isOverloaded } from './retry.ts';
import { type Fixture, oidcPath } from './service.ts';

/** What is sent each second, if the machine allows. */
const LOOKUPS_PER_SECOND = 1_000;
const WRITES_PER_SECOND = 200;
/** A request that is due while this many are pending is not sent: a slow machine gets less load, and no backlog. */
const PENDING_MAX = 64;
const TICK_MS = 10;
/** How long the load runs before and after the work. */
const MARGIN_MS = 1_000;

const KINDS = ['lookup', 'write'] as const;
type Kind = (typeof KINDS)[number];

/** A service, and the realms in which users are looked up and created. */
export interface LoadTarget {
  readonly url: string;
  /** With the scopes `profile-infos:read` and `users:write`. */
  readonly token: string;
  readonly fixtures: readonly Fixture[];
}

export interface LoadReport {
  /**
   * Numbers of answers by kind and status, such as `lookup 200`; `overloaded` for those that a busy machine causes, and the error
   * for lost connections.
   */
  readonly answers: Readonly<Record<string, number>>;
  /** The IDs of the created users. */
  readonly created: readonly string[];
  /** One sentence with rates, answers and the slowest of them. */
  readonly summary: string;
}

/** Sends lookups and writes to all realms on schedule while `work` runs. Nothing is sent again. */
export async function underLoad(target: LoadTarget, work: () => Promise<unknown>): Promise<LoadReport> {
  const load = startLoad(target);
  try {
    await Bun.sleep(MARGIN_MS);
    await work();
    await Bun.sleep(MARGIN_MS);
  } finally {
    await load.stop();
  }
  return load.report();
}

function startLoad({ url, token, fixtures }: LoadTarget) {
  const answers: Record<string, number> = {};
  const created: string[] = [];
  const sent = { lookup: 0, write: 0 };
  const slowestMs = { lookup: 0, write: 0 };
  const pending = new Set<Promise<void>>();
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const word = crypto.randomUUID();

  const requests: Readonly<Record<Kind, (fixture: Fixture) => Promise<Response>>> = {
    lookup: (fixture) => fetch(url + oidcPath(fixture), { headers }),
    write({ realm }) {
      const email = `load.${sent.write}.${word}@example.com`;
      const body = JSON.stringify({ data: { type: 'user_authentication_info', name: 'Load', email } });
      const path = `/v2/authentication-realms/${realm}/user-authentication-info`;
      return fetch(url + path, { method: 'POST', headers, body });
    },
  };

  async function send(kind: Kind): Promise<void> {
    const start = performance.now();
    sent[kind] += 1;
    const outcome = await outcomeOf(requests[kind](fixtures[sent[kind] % fixtures.length] as Fixture));
    if (outcome.created !== undefined) created.push(outcome.created);
    const name = `${kind} ${outcome.name}`;
    answers[name] = (answers[name] ?? 0) + 1;
    slowestMs[kind] = Math.max(slowestMs[kind], performance.now() - start);
  }

  const start = performance.now();
  const due = { lookup: 0, write: 0 };
  const perSecond = { lookup: LOOKUPS_PER_SECOND, write: WRITES_PER_SECOND };
  const timer = setInterval(() => {
    const seconds = (performance.now() - start) / 1_000;
    for (const kind of KINDS) {
      for (; due[kind] < seconds * perSecond[kind]; due[kind] += 1) {
        if (pending.size >= PENDING_MAX) continue;
        const request = send(kind).finally(() => pending.delete(request));
        pending.add(request);
      }
    }
  }, TICK_MS);
  let seconds = 0;
  return {
    async stop() {
      clearInterval(timer);
      seconds = (performance.now() - start) / 1_000;
      await Promise.all(pending);
    },
    report(): LoadReport {
      const counts = Object.entries(answers).map(([name, count]) => `${count} ${name}`);
      const rates = KINDS.map((kind) => `${(sent[kind] / seconds).toFixed(0)} ${kind}s/s`);
      const slowest = KINDS.map((kind) => `slowest ${kind} ${slowestMs[kind].toFixed(0)} ms`);
      const summary = `${seconds.toFixed(1)} s with ${[...rates, ...slowest].join(', ')}: ${counts.join(', ')}`;
      return { answers, created, summary };
    },
  };
}

interface Outcome {
  readonly name: string;
  readonly created?: string;
}

async function outcomeOf(request: Promise<Response>): Promise<Outcome> {
  try {
    const answer = await request;
    const text = await answer.text();
    if (await isOverloaded({ text })) return { name: 'overloaded' };
    if (answer.status !== 201) return { name: String(answer.status) };
    return { name: '201', created: (JSON.parse(text) as { data: { id: string } }).data.id };
  } catch (error) {
    return { name: (error as NodeJS.ErrnoException).code ?? (error as Error).message };
  }
}
