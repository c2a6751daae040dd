import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { HOST } from './daemons.ts';
import { freshFolder } from './folder.ts';
import type { PostgresServer } from './postgres_server.ts';
import { type Data, FULL_SCOPE, kindOf, OFFLINE, uniqueWord } from './resource_cases.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from './service.ts';

/** Nothing takes longer, whatever happens to the engine: LIMITS.answerMsMax, and the way there and back. */
const ANSWER_MS_MAX = 5_250;
/** From the return of the engine to an answer. */
const RECOVERY_MS_MAX = 2_000;
const PAUSE_MS = 20;

/** An answer, and how long it took. */
export interface TimedResponse {
  readonly status: number;
  readonly ms: number;
  /** Of a record that was made. */
  readonly id: string | undefined;
  readonly response: Response;
}

export interface RetryableWrite {
  readonly key: string;
  readonly data: Data;
}

/** A service over a database that gets into trouble. */
export interface FaultyService {
  readonly service: Service;
  readonly fixture: Fixture;
  /** One lookup. */
  lookUp(): Promise<TimedResponse>;
  /** One create, of a user; `again` is a request that may be sent several times. */
  write(again?: RetryableWrite): Promise<TimedResponse>;
  /** A create that nobody has sent yet. */
  retryableWrite(): RetryableWrite;
  /** Several of each at once, one after the other for this long; a write that was not done is sent again until it is. */
  runLoad(milliseconds: number): Promise<readonly TimedResponse[]>;
  /** Answers after how many milliseconds a lookup and a write are answered as ever; throws where that takes too long. */
  measureRecovery(): Promise<number>;
  /** Every user that the service has said is made. */
  readonly acknowledged: ReadonlySet<string>;
  /** Every user that is there. */
  users(url?: string): Promise<ReadonlySet<string>>;
  stop(): Promise<void>;
}

/** A new, empty database of a server, as the service reaches it by these ports. */
export async function databaseThrough(server: PostgresServer, ports: readonly number[], query = '') {
  const url = new URL(await server.freshDatabase());
  return {
    direct: url.href,
    flags: { database: urlThrough(url.pathname, ports, query), masterKeyFile: writeMasterKey() },
  };
}

/** The URL of a database by these ports of this machine. */
export function urlThrough(path: string, ports: readonly number[], query = ''): string {
  return `postgres://postgres@${ports.map((port) => `${HOST}:${port}`).join(',')}${path}${query}`;
}

export function writeMasterKey(): string {
  const path = join(freshFolder(), 'master.key');
  writeFileSync(path, Buffer.from(systemClock.randomBytes(32)).toString('base64url'), { mode: 0o600 });
  return path;
}

/** `direct` leads to the engine without whatever stands before it. */
export async function startFaultyService({
  direct,
  flags,
}: Awaited<ReturnType<typeof databaseThrough>>): Promise<FaultyService> {
  const service = await startService({ ...OFFLINE, ...flags });
  const planted = await createFixture(service.db);
  const token = await service.token(FULL_SCOPE);
  const kind = kindOf(user);
  const acknowledged = new Set<string>([planted.user]);

  async function timed(asked: Promise<Response>): Promise<TimedResponse> {
    const start = performance.now();
    const answer = await asked;
    const body =
      answer.status === 201 ? ((await answer.clone().json()) as { data: { id: string } }) : undefined;
    const heard = {
      status: answer.status,
      ms: performance.now() - start,
      id: body?.data.id,
      response: answer,
    };
    const { status, ms } = heard;
    const isNotNow = status === 503 || status === 409;
    const isFit = isNotNow ? answer.headers.get('retry-after') === '1' : status === 200 || status === 201;
    if (heard.id !== undefined) acknowledged.add(heard.id);
    if (!isFit || ms > ANSWER_MS_MAX) throw new Error(`answered ${status} after ${ms} ms`);
    return heard;
  }

  const look = () => timed(service.withoutRetry.get(oidcPath(planted), token));
  const repeatable = () => ({ key: uniqueWord('key'), data: kind.fresh(planted) });
  const write = ({ key, data }: RetryableWrite = repeatable()) =>
    timed(service.withoutRetry.post(kind.collection(planted), token, { data }, { 'Idempotency-Key': key }));
  return {
    service,
    fixture: planted,
    lookUp: look,
    write,
    retryableWrite: repeatable,
    acknowledged,
    async runLoad(milliseconds) {
      const end = performance.now() + milliseconds;
      const heard: TimedResponse[] = [];
      const until = async (ask: () => Promise<TimedResponse>) => {
        for (;;) {
          const one = await ask();
          heard.push(one);
          if (one.status < 400) return;
          await Bun.sleep(PAUSE_MS);
        }
      };
      const caller = async (next: () => () => Promise<TimedResponse>) => {
        while (performance.now() < end) await until(next());
      };
      const looker = () => look;
      const writer = () => {
        const asked = repeatable();
        return () => write(asked);
      };
      await Promise.all([looker, looker, looker, writer, writer, writer].map(caller));
      return heard;
    },
    async measureRecovery() {
      const start = performance.now();
      const asked = repeatable();
      for (;;) {
        const statuses = (await Promise.all([look(), write(asked)])).map(({ status }) => status);
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
