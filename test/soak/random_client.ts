import type { Data, Kind, ParentIds, RecordBody } from '../support/resource_cases.ts';
import type { RestartableService } from './restartable_service.ts';
import type { WriteAttempt } from './write_history.ts';

/** Sends requests to a service that may be killed at any moment, and records the outcome of each write. */
export interface RandomClient {
  readonly history: readonly WriteAttempt[];
  /** Sends a write once. Undefined when its outcome is unknown. */
  sendOnce(write: WriteRequest): Promise<ClientResponse | undefined>;
  /** Sends a POST with one Idempotency-Key until it is answered. */
  untilAnswered(write: WriteRequest): Promise<ClientResponse>;
  get(path: string): Promise<ClientResponse>;
}

export interface WriteRequest {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly data?: Data;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ClientResponse {
  readonly status: number;
  readonly etag: string;
  readonly text: string;
}

export interface RandomClientOptions {
  readonly name: string;
  /** The service that receives the next request. */
  service(): RestartableService;
  /** The token to send; a new one after a 401. */
  token(isRefused: boolean): Promise<string>;
  onResponse?(method: string, path: string, status: number, text: string): void;
}

const ANSWER_MS_MAX = 10_000;
const RETRY_MS_MAX = 300_000;
const PAUSE_MS = 10;
const TOKEN_ATTEMPTS_MAX = 20;

export function openRandomClient({ name, service, token, onResponse }: RandomClientOptions): RandomClient {
  const history: WriteAttempt[] = [];
  let count = 0;

  function nextId(): string {
    count += 1;
    return `${name}-${count}`;
  }

  async function sendAuthenticated(
    method: string,
    path: string,
    init: RequestInit,
  ): Promise<ClientResponse | undefined> {
    for (let tokens = 0; tokens < TOKEN_ATTEMPTS_MAX; tokens += 1) {
      const answer = await fetchOnce(method, path, init, await token(tokens > 0));
      if (answer?.status !== 401) return answer;
    }
    throw new Error(`every token was rejected for ${path}`);
  }

  async function fetchOnce(method: string, path: string, init: RequestInit, bearer: string) {
    const target = service();
    try {
      await target.waitUntilReady();
    } catch (error) {
      if (target.isStopped) return undefined;
      throw error;
    }
    try {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const headers = { ...(init.headers as Record<string, string>), Authorization: `Bearer ${bearer}` };
      // Without keep-alive: fetch silently resends a request when a reused connection breaks.
      const answer = await fetch(target.url + path, { ...init, headers, method, signal, keepalive: false });
      const text = await answer.text();
      onResponse?.(method, path, answer.status, text);
      if (answer.status >= 500) return undefined;
      return { status: answer.status, etag: answer.headers.get('etag') ?? '', text };
    } catch {
      return undefined;
    }
  }

  function send(
    { method, path, data, headers }: WriteRequest,
    id: string,
  ): Promise<ClientResponse | undefined> {
    const known = { 'Content-Type': 'application/json', 'X-Request-Id': id };
    const body = data === undefined ? {} : { body: JSON.stringify({ data }) };
    return sendAuthenticated(method, path, { headers: { ...known, ...headers }, ...body });
  }

  /** Sends until there is a response. */
  async function retry(
    path: string,
    sendOnce: () => Promise<ClientResponse | undefined>,
  ): Promise<ClientResponse> {
    const deadline = performance.now() + RETRY_MS_MAX;
    while (performance.now() < deadline) {
      const answer = await sendOnce();
      if (answer) return answer;
      await Bun.sleep(PAUSE_MS);
    }
    throw new Error(`${path} was never answered`);
  }

  const outcomeOf = ({ status }: ClientResponse) => (status < 400 ? 'acknowledged' : 'rejected');

  return {
    history,
    async sendOnce(write) {
      const id = nextId();
      const from = performance.now();
      const answer = await send(write, id);
      const outcome = answer ? outcomeOf(answer) : 'unknown';
      history.push({ ids: [id], outcome, from, to: performance.now() });
      return answer;
    },
    async untilAnswered(write) {
      const key = { 'Idempotency-Key': nextId() };
      const ids: string[] = [];
      const from = performance.now();
      const answer = await retry(write.path, async () => {
        const id = nextId();
        ids.push(id);
        const response = await send({ ...write, headers: { ...write.headers, ...key } }, id);
        return response?.status === 409 ? undefined : response;
      });
      history.push({ ids, outcome: outcomeOf(answer), from, to: performance.now() });
      return answer;
    },
    get: (path) => retry(path, () => sendAuthenticated('GET', path, {})),
  };
}

export function bodyOf({ text }: ClientResponse): RecordBody {
  return JSON.parse(text) as RecordBody;
}

/** A record of the model. */
export interface ModelRecord {
  readonly kind: Kind;
  readonly id: string;
  readonly home: ParentIds;
  /** Its members, without timestamps. */
  readonly data: Data;
}

export function pathOf({ kind, home, id }: Pick<ModelRecord, 'kind' | 'home' | 'id'>): string {
  return `${kind.collection(home)}/${id}`;
}

/** The members of a record that only a write changes. */
export function stableMembers({ data: { meta, ...data } }: RecordBody): Data {
  const { created_at, updated_at, ...more } = meta;
  return { ...data, ...more };
}
