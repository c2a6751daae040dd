import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { HOST } from './daemons.ts';
import { freshFolder } from './folder.ts';
import type { SharedServer } from './postgres_server.ts';
import { type Data, FULL_SCOPE, kindOf, OFFLINE, uniqueWord } from './resource_cases.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from './service.ts';

/** What a busy machine may add to each of these. */
const BUSY_MS = 3_000;
/** The longest time of a response: LIMITS.answerMsMax plus the network. */
const ANSWER_MS_MAX = 5_250 + BUSY_MS;
/** The longest time from the recovery of the engine to a successful response. */
const RECOVERY_MS_MAX = 2_000 + BUSY_MS;
/** The longest time of a response that waits for nothing: less than a statement or a connection may take. */
export const AT_ONCE_MS_MAX = 2_500;
const PAUSE_MS = 20;

/** A response and its duration. */
export interface TimedResponse {
  readonly status: number;
  readonly ms: number;
  /** The ID of a created record. */
  readonly id: string | undefined;
  readonly response: Response;
}

export interface RetryableWrite {
  readonly key: string;
  readonly data: Data;
}

/** A service on a database with injected faults. */
export interface FaultyService {
  readonly service: Service;
  readonly fixture: Fixture;
  /** One lookup. */
  lookUp(): Promise<TimedResponse>;
  /** Creates a user; a given request may be sent several times. */
  write(request?: RetryableWrite): Promise<TimedResponse>;
  /** A new request to create a user. */
  retryableWrite(): RetryableWrite;
  /** Sends lookups and writes concurrently for this long; a failed write is sent again until it succeeds. */
  runLoad(milliseconds: number): Promise<readonly TimedResponse[]>;
  /** The milliseconds until a lookup and a write succeed; throws after RECOVERY_MS_MAX. */
  measureRecovery(): Promise<number>;
  /** Every user that the service has acknowledged. */
  readonly acknowledged: ReadonlySet<string>;
  /** Every user in the database. */
  users(url?: string): Promise<ReadonlySet<string>>;
  stop(): Promise<void>;
}

/** A new, empty database of a server, with the settings to reach it through these ports. */
export async function databaseThrough(server: SharedServer, ports: readonly number[], query = '') {
  const url = new URL(await server.freshDatabase());
  return {
    direct: url.href,
    flags: { database: urlThrough(url.pathname, ports, query), masterKeyFile: writeMasterKey() },
  };
}

/** The URL of a database through these ports of this machine. */
export function urlThrough(path: string, ports: readonly number[], query = ''): string {
  return `postgres://postgres@${ports.map((port) => `${HOST}:${port}`).join(',')}${path}${query}`;
}

export function writeMasterKey(): string {
  const path = join(freshFolder(), 'master.key');
  writeFileSync(path, Buffer.from(systemClock.randomBytes(32)).toString('base64url'), { mode: 0o600 });
  return path;
}

/** `direct` is the URL of the engine without a proxy. */
export async function startFaultyService({
  direct,
  flags,
}: Awaited<ReturnType<typeof databaseThrough>>): Promise<FaultyService> {
  const service = await startService({ ...OFFLINE, ...flags });
  const fixture = await createFixture(service.db);
  const token = await service.token(FULL_SCOPE);
  const kind = kindOf(user);
  const acknowledged = new Set<string>([fixture.user]);

  async function timed(request: Promise<Response>): Promise<TimedResponse> {
    const start = performance.now();
    const response = await request;
    const { status } = response;
    const body = status === 201 ? ((await response.clone().json()) as { data: { id: string } }) : undefined;
    const id = body?.data.id;
    const ms = performance.now() - start;
    const isRetryable = status === 503 || status === 409;
    const isExpected = isRetryable
      ? response.headers.get('retry-after') === '1'
      : status === 200 || status === 201;
    if (id !== undefined) acknowledged.add(id);
    if (!isExpected || ms > ANSWER_MS_MAX) throw new Error(`answered ${status} after ${ms} ms`);
    return { status, ms, id, response };
  }

  const lookUp = () => timed(service.withoutRetry.get(oidcPath(fixture), token));
  const retryableWrite = () => ({ key: uniqueWord('key'), data: kind.fresh(fixture) });
  const write = ({ key, data }: RetryableWrite = retryableWrite()) =>
    timed(service.withoutRetry.post(kind.collection(fixture), token, { data }, { 'Idempotency-Key': key }));
  return {
    service,
    fixture,
    lookUp,
    write,
    retryableWrite,
    acknowledged,
    async runLoad(milliseconds) {
      const end = performance.now() + milliseconds;
      const responses: TimedResponse[] = [];
      const sendUntilDone = async (send: () => Promise<TimedResponse>) => {
        for (;;) {
          const response = await send();
          responses.push(response);
          if (response.status < 400) return;
          await Bun.sleep(PAUSE_MS);
        }
      };
      const runClient = async (next: () => () => Promise<TimedResponse>) => {
        while (performance.now() < end) await sendUntilDone(next());
      };
      const reader = () => lookUp;
      const writer = () => {
        const request = retryableWrite();
        return () => write(request);
      };
      await Promise.all([reader, reader, reader, writer, writer, writer].map(runClient));
      return responses;
    },
    async measureRecovery() {
      const start = performance.now();
      const request = retryableWrite();
      for (;;) {
        const statuses = (await Promise.all([lookUp(), write(request)])).map(({ status }) => status);
        const ms = performance.now() - start;
        if (ms > RECOVERY_MS_MAX) throw new Error(`not recovered after ${ms} ms: ${statuses}`);
        if (statuses.join() === '200,201') return ms;
      }
    },
    async users(url = direct) {
      const client = new SQL(url, { max: 1 });
      const rows: { id: string }[] = await client
        .unsafe('select id from user_info')
        .finally(() => client.close());
      return new Set(rows.map(({ id }) => id));
    },
    stop: () => service.stop(),
  };
}
