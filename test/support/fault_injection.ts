import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { HOST } from './daemons.ts';
import { freshFolder } from './folder.ts';
import type { PostgresServer } from './postgres_server.ts';
import { type Data, FULL_SCOPE, kindOf, OFFLINE, word } from './resource_cases.ts';
import { oidcPath, type Planted, plant, type Service, startService } from './service.ts';

/** Nothing takes longer, whatever happens to the engine: LIMITS.answerMsMax, and the way there and back. */
const ANSWER_MS_MAX = 5_250;
/** From the return of the engine to an answer. */
const RECOVERY_MS_MAX = 2_000;
const PAUSE_MS = 20;

/** An answer, and how long it took. */
export interface Heard {
  readonly status: number;
  readonly ms: number;
  /** Of a record that was made. */
  readonly id: string | undefined;
  readonly answer: Response;
}

export interface Repeatable {
  readonly key: string;
  readonly data: Data;
}

/** A service over a database that gets into trouble. */
export interface Troubled {
  readonly service: Service;
  readonly planted: Planted;
  /** One lookup. */
  look(): Promise<Heard>;
  /** One create, of a user; `again` is a request that may be sent several times. */
  write(again?: Repeatable): Promise<Heard>;
  /** A create that nobody has sent yet. */
  repeatable(): Repeatable;
  /** Several of each at once, one after the other for this long; a write that was not done is sent again until it is. */
  load(milliseconds: number): Promise<readonly Heard[]>;
  /** Answers after how many milliseconds a lookup and a write are answered as ever; throws where that takes too long. */
  recovered(): Promise<number>;
  /** Every user that the service has said is made. */
  readonly acknowledged: ReadonlySet<string>;
  /** Every user that is there. */
  users(url?: string): Promise<ReadonlySet<string>>;
  stop(): Promise<void>;
}

/** A new, empty database of a server, as the service reaches it by these ports. */
export async function databaseBy(server: PostgresServer, ports: readonly number[], query = '') {
  const url = new URL(await server.freshDatabase());
  return {
    direct: url.href,
    flags: { database: reachedBy(url.pathname, ports, query), masterKeyFile: freshMasterKey() },
  };
}

/** The URL of a database by these ports of this machine. */
export function reachedBy(path: string, ports: readonly number[], query = ''): string {
  return `postgres://postgres@${ports.map((port) => `${HOST}:${port}`).join(',')}${path}${query}`;
}

export function freshMasterKey(): string {
  const path = join(freshFolder(), 'master.key');
  writeFileSync(path, Buffer.from(systemClock.randomBytes(32)).toString('base64url'), { mode: 0o600 });
  return path;
}

/** `direct` leads to the engine without whatever stands before it. */
export async function startTroubled({
  direct,
  flags,
}: Awaited<ReturnType<typeof databaseBy>>): Promise<Troubled> {
  const service = await startService({ ...OFFLINE, ...flags });
  const planted = await plant(service.db);
  const token = await service.token(FULL_SCOPE);
  const kind = kindOf(user);
  const acknowledged = new Set<string>([planted.user]);

  async function timed(asked: Promise<Response>): Promise<Heard> {
    const start = performance.now();
    const answer = await asked;
    const body =
      answer.status === 201 ? ((await answer.clone().json()) as { data: { id: string } }) : undefined;
    const heard = { status: answer.status, ms: performance.now() - start, id: body?.data.id, answer };
    const { status, ms } = heard;
    const isNotNow = status === 503 || status === 409;
    const isFit = isNotNow ? answer.headers.get('retry-after') === '1' : status === 200 || status === 201;
    if (heard.id !== undefined) acknowledged.add(heard.id);
    if (!isFit || ms > ANSWER_MS_MAX) throw new Error(`answered ${status} after ${ms} ms`);
    return heard;
  }

  const look = () => timed(service.once.get(oidcPath(planted), token));
  const repeatable = () => ({ key: word('key'), data: kind.fresh(planted) });
  const write = ({ key, data }: Repeatable = repeatable()) =>
    timed(service.once.post(kind.collection(planted), token, { data }, { 'Idempotency-Key': key }));
  return {
    service,
    planted,
    look,
    write,
    repeatable,
    acknowledged,
    async load(milliseconds) {
      const end = performance.now() + milliseconds;
      const heard: Heard[] = [];
      const until = async (ask: () => Promise<Heard>) => {
        for (;;) {
          const one = await ask();
          heard.push(one);
          if (one.status < 400) return;
          await Bun.sleep(PAUSE_MS);
        }
      };
      const caller = async (next: () => () => Promise<Heard>) => {
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
    async recovered() {
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
