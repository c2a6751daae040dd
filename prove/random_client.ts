import type { Body, Data, Home, Kind } from '../test/family.ts';
import type { Asked } from './ledger.ts';
import type { Mortal } from './mortal.ts';

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

const ANSWER_MS_MAX = 10_000;
const ATTEMPTS_MAX = 100;

export function openSender(mortal: Mortal, token: string, name: string): Sender {
  const ledger: Asked[] = [];
  let count = 0;

  function nextId(): string {
    count += 1;
    return `${name}-${count}`;
  }

  async function attempt(method: string, path: string, init: RequestInit): Promise<Answered | undefined> {
    await mortal.up();
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const answer = await fetch(mortal.url + path, { ...init, method, signal });
      const text = await answer.text();
      if (answer.status >= 500) return undefined;
      return { status: answer.status, etag: answer.headers.get('etag') ?? '', text };
    } catch {
      return undefined;
    }
  }

  function send({ method, path, data, headers }: Sending, id: string): Promise<Answered | undefined> {
    const known = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'X-Request-Id': id,
    };
    const body = data === undefined ? {} : { body: JSON.stringify({ data }) };
    return attempt(method, path, { headers: { ...known, ...headers }, ...body });
  }

  const outcomeOf = ({ status }: Answered) => (status < 400 ? 'done' : 'refused');

  return {
    ledger,
    async once(write) {
      const id = nextId();
      const answer = await send(write, id);
      ledger.push({ ids: [id], outcome: answer ? outcomeOf(answer) : 'unknown' });
      return answer;
    },
    async untilAnswered(write) {
      const key = { 'Idempotency-Key': nextId() };
      const ids: string[] = [];
      for (let left = ATTEMPTS_MAX; left > 0; left -= 1) {
        const id = nextId();
        ids.push(id);
        const answer = await send({ ...write, headers: { ...write.headers, ...key } }, id);
        if (!answer || answer.status === 409) continue;
        ledger.push({ ids, outcome: outcomeOf(answer) });
        return answer;
      }
      throw new Error(`${write.path} was never answered`);
    },
    async get(path) {
      for (let left = ATTEMPTS_MAX; left > 0; left -= 1) {
        const answer = await attempt('GET', path, { headers: { Authorization: `Bearer ${token}` } });
        if (answer) return answer;
      }
      throw new Error(`${path} was never answered`);
    },
  };
}

export function bodyOf({ text }: Answered): Body {
  return JSON.parse(text) as Body;
}

/** A record as a model keeps it. */
export interface Kept {
  readonly kind: Kind;
  readonly id: string;
  readonly home: Home;
  /** What it says, but for its instants. */
  readonly data: Data;
}

export function pathOf({ kind, home, id }: Pick<Kept, 'kind' | 'home' | 'id'>): string {
  return `${kind.collection(home)}/${id}`;
}

/** What a record says, but for what moves by itself. */
export function saidBy({ data: { meta, ...data } }: Body): Data {
  const { created_at, updated_at, ...more } = meta;
  return { ...data, ...more };
}
