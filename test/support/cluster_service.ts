import { expect } from 'bun:test';
import type { Flags } from '../../src/app/config/parse.ts';
import type { CitusCluster } from './citus_cluster.ts';
import { freshMasterKey, postgresAt, type TestDatabase } from './database.ts';
import type { PostgresServer } from './postgres_server.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from './service.ts';

/** A service on a new database of a cluster, and its realms by the worker that has them. */
export interface ClusterService {
  readonly service: Service;
  readonly database: TestDatabase;
  /** The URL of the database for the role `postgres`. */
  readonly adminUrl: string;
  readonly token: string;
  /** Creates a realm with records on this worker. */
  fixtureOn(worker: PostgresServer): Promise<Fixture>;
  /** Sends each request once: a lookup, a list and a write in a realm. */
  answersIn(fixture: Fixture): Promise<readonly Answer[]>;
  /** A path and a body that create another user. */
  newUser(fixture: Fixture): readonly [path: string, body: object];
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly ms: number;
}

const SCOPE = 'realms:read realms:write users:read users:write profile-infos:read changes:read admin';
export const REALMS = '/v2/authentication-realms';

const RETRY_MS = 50;

export const usersPath = ({ realm }: Pick<Fixture, 'realm'>) => `${REALMS}/${realm}/user-authentication-info`;

/** `flags` are added to those of the database. */
export async function startClusterService(
  cluster: CitusCluster,
  flags: (database: TestDatabase) => Flags = () => ({}),
): Promise<ClusterService> {
  const database = postgresAt(await cluster.freshDatabase(), freshMasterKey());
  const service = await startService({ ...database.flags, offline: 'true', ...flags(database) });
  const adminUrl = database.url.replace(/(?<=\/\/)\w+(?=@)/, 'postgres');
  const token = await service.token(SCOPE);
  const { get, post } = service.withoutRetry;
  let users = 0;
  const newUser: ClusterService['newUser'] = (fixture) => {
    users += 1;
    const data = { type: 'user_authentication_info', name: 'User', email: `user.${users}@example.com` };
    return [usersPath(fixture), { data }];
  };
  return {
    service,
    database,
    adminUrl,
    token,
    newUser,
    async fixtureOn(worker) {
      for (;;) {
        const fixture = await createFixture(service.db);
        if ((await cluster.workerOf(adminUrl, fixture.realm)) === worker) return fixture;
      }
    },
    async answersIn(fixture) {
      const [users, user] = newUser(fixture);
      return [
        await answerTo(get(oidcPath(fixture), token)),
        await answerTo(get(users, token)),
        await answerTo(post(users, token, user)),
      ];
    },
  };
}

export async function answerTo(response: Promise<Response>): Promise<Answer> {
  const start = performance.now();
  const answer = await response;
  await answer.arrayBuffer();
  const ms = performance.now() - start;
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), ms };
}

/** Sends a request with an Idempotency-Key again until it succeeds, as clients do. Returns the ID of the record. */
export async function sendUntilDone(send: () => Promise<Response>): Promise<string> {
  for (;;) {
    const answer = await send();
    const text = await answer.text();
    if (answer.status === 201) return (JSON.parse(text) as { data: { id: string } }).data.id;
    expect([503, 409]).toContain(answer.status);
    await Bun.sleep(RETRY_MS);
  }
}
