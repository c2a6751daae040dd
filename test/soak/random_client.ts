import type { Data, Kind, ParentIds, RecordBody } from '../support/resource_cases.ts';
import type { Asked } from './ledger.ts';
import type { Mortal } from './restartable_service.ts';

/** Sends requests to a service that may die at any moment, and keeps what is known of each write. */
export interface Sender {
  readonly ledger: readonly Asked[];
  /** A write that is sent once. Undefined where nobody knows whether it landed. */
  once(write: Sending): Promise<Answered | undefined>;
  /** A POST under one Idempotency-Key, sent until it is answered. */
  untilAnswered(write: Sending): Promise<Answered>;
  get(path: string): Promise<Answered>;
}

export interface Sending {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly data?: Data;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answered {
  readonly status: number;
  readonly etag: string;
  readonly text: string;
}

/** Who sends, and how the service is reached. */
export interface Caller {
  readonly name: string;
  /** The service that is asked next. */
  service(): Mortal;
  /** The token to send; another one where the last was refused. */
  token(isRefused: boolean): Promise<string>;
  /** Hears every answer. */
  hear?(method: string, path: string, status: number, text: string): void;
}

const ANSWER_MS_MAX = 10_000;
const PATIENCE_MS = 300_000;
const PAUSE_MS = 10;
const TOKENS_MAX = 20;

export function openSender({ name, service, token, hear }: Caller): Sender {
  const ledger: Asked[] = [];
  let count = 0;

  function nextId(): string {
    count += 1;
    return `${name}-${count}`;
  }

  async function attempt(method: string, path: string, init: RequestInit): Promise<Answered | undefined> {
    for (let tokens = 0; tokens < TOKENS_MAX; tokens += 1) {
      const answer = await ask(method, path, init, await token(tokens > 0));
      if (answer?.status !== 401) return answer;
    }
    throw new Error(`no token is good enough for ${path}`);
  }

  async function ask(method: string, path: string, init: RequestInit, bearer: string) {
    const mortal = service();
    try {
      await mortal.up();
    } catch (error) {
      if (mortal.isOver) return undefined;
      throw error;
    }
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const headers = { ...(init.headers as Record<string, string>), Authorization: `Bearer ${bearer}` };
      // A connection that is used again and breaks has its request sent once more by itself: nobody would know of the first.
      const answer = await fetch(mortal.url + path, { ...init, headers, method, signal, keepalive: false });
      const text = await answer.text();
      hear?.(method, path, answer.status, text);
      if (answer.status >= 500) return undefined;
      return { status: answer.status, etag: answer.headers.get('etag') ?? '', text };
    } catch {
      return undefined;
    }
  }

  function send({ method, path, data, headers }: Sending, id: string): Promise<Answered | undefined> {
    const known = { 'Content-Type': 'application/json', 'X-Request-Id': id };
    const body = data === undefined ? {} : { body: JSON.stringify({ data }) };
    return attempt(method, path, { headers: { ...known, ...headers }, ...body });
  }

  /** Asks again until there is an answer. */
  async function until(path: string, once: () => Promise<Answered | undefined>): Promise<Answered> {
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const answer = await once();
      if (answer) return answer;
      await Bun.sleep(PAUSE_MS);
    }
    throw new Error(`${path} was never answered`);
  }

  const outcomeOf = ({ status }: Answered) => (status < 400 ? 'done' : 'refused');

  return {
    ledger,
    async once(write) {
      const id = nextId();
      const from = performance.now();
      const answer = await send(write, id);
      const outcome = answer ? outcomeOf(answer) : 'unknown';
      ledger.push({ ids: [id], outcome, from, to: performance.now() });
      return answer;
    },
    async untilAnswered(write) {
      const key = { 'Idempotency-Key': nextId() };
      const ids: string[] = [];
      const from = performance.now();
      const answer = await until(write.path, async () => {
        const id = nextId();
        ids.push(id);
        const heard = await send({ ...write, headers: { ...write.headers, ...key } }, id);
        return heard?.status === 409 ? undefined : heard;
      });
      ledger.push({ ids, outcome: outcomeOf(answer), from, to: performance.now() });
      return answer;
    },
    get: (path) => until(path, () => attempt('GET', path, {})),
  };
}

export function bodyOf({ text }: Answered): RecordBody {
  return JSON.parse(text) as RecordBody;
}

/** A record as a model keeps it. */
export interface Kept {
  readonly kind: Kind;
  readonly id: string;
  readonly home: ParentIds;
  /** What it says, but for its instants. */
  readonly data: Data;
}

export function pathOf({ kind, home, id }: Pick<Kept, 'kind' | 'home' | 'id'>): string {
  return `${kind.collection(home)}/${id}`;
}

/** What a record says, but for what moves by itself. */
export function saidBy({ data: { meta, ...data } }: RecordBody): Data {
  const { created_at, updated_at, ...more } = meta;
  return { ...data, ...more };
}
