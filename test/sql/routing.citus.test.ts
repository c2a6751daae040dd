import { afterAll, describe, expect, test } from 'bun:test';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../../src/model/resources.ts';
import { startCluster } from '../support/citus_cluster.ts';
import { freshMasterKey, postgresAt } from '../support/database.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import {
  createFixture,
  type Fixture,
  ISSUER,
  oidcPath,
  passwordPath,
  startService,
} from '../support/service.ts';
import { STATEMENT_LOGGING } from '../support/statement_texts.ts';

/** Which nodes a request needs, from the statement logs of the workers. */

const REALMS = '/v2/authentication-realms';
const SCOPE =
  'realms:read realms:write users:read users:write profile-infos:read profile-infos:write changes:read';

const LINKS = 'oidc_profile_infos,password_profile_infos';
/** In a realm that is not on the node with the log of the installation. */
let fixture: Fixture;
/** The worker of that realm. */
let own: PostgresServer;

const cluster = await startCluster({ settings: STATEMENT_LOGGING });
const url = await cluster.freshDatabase();
const service = await startService({ ...postgresAt(url, freshMasterKey()).flags, offline: 'true' });
const token = await service.token(SCOPE);
/** The worker with the log of the installation. */
const home = await cluster.workerOf(url, NIL_UUID);
do {
  fixture = await createFixture(service.db, { subject: `routed` });
  own = await cluster.workerOf(url, fixture.realm);
} while (own === home);

interface Seen {
  readonly node: PostgresServer;
  readonly text: string;
}

/** Work of the service in the background, and of Citus itself. */
const BACKGROUND =
  /\b(client_use|lease|console_link|console_session|webhook_progress|delivery|dead_letter)_\d|pg_prepared_xacts|pg_dist|citus_|dump_|^SET |tables? of erasures/i;

/** Runs a request. Returns what the workers were sent for it, each text one round trip. */
async function statementsOf(request: () => Promise<unknown>): Promise<readonly Seen[]> {
  const marks = cluster.workers.map((node) => node.log().length);
  await request();
  // The server writes its log at once, the operating system hands it over in the same order.
  return cluster.workers.flatMap((node, at) =>
    node
      .log()
      .slice(marks[at])
      .split(/^@@/m)
      .flatMap((entry) => {
        const [, text = ''] = /^\S+ LOG: {2}(?:statement|execute [^:]*): (.*)$/s.exec(entry) ?? [];
        return text === '' || BACKGROUND.test(text) ? [] : [{ node, text }];
      }),
  );
}

const isControl = ({ text }: Seen) => /^(begin|commit|rollback|savepoint|release|prepare)/i.test(text);
const isTwoPhase = ({ text }: Seen) => /^(prepare transaction|commit prepared)/i.test(text);

/** The realm of the fixture, with its records. */
const base = () => `${REALMS}/${fixture.realm}`;
const users = () => `${base()}/user-authentication-info`;
const userOf = (id: Uuid) => `${users()}/${id}`;
const linksOf = (id: Uuid) => `${userOf(id)}/user-authentication-oidc-profile-info`;

async function expectStatus(response: Promise<Response>, status: number): Promise<Response> {
  const answer = await response;
  const text = await answer.text();
  expect([answer.status, answer.status === status ? '' : text]).toEqual([status, '']);
  return new Response(text);
}

let names = 0;
function newUser() {
  names += 1;
  const name = `User ${names}`;
  return { data: { type: 'user_authentication_info', name, email: `user.${names}@example.com` } };
}

async function createUser(headers: Record<string, string> = {}): Promise<Uuid> {
  const answer = await expectStatus(service.post(users(), token, newUser(), headers), 201);
  return ((await answer.json()) as { data: { id: Uuid } }).data.id;
}

const find = (subject: string) =>
  `${base()}/user-authentication-oidc-profile-info?filter=eq(issuer,${encodeURIComponent(ISSUER)}):eq(subject,${subject})`;

/** What is printed: request, statements and round trips to workers, workers. */
const table: (readonly [string, number, number, number])[] = [];
afterAll(() => {
  const rows = table.map((cells) => `| ${cells.join(' | ')} |`);
  console.log(
    ['| Request | Statements | Round trips | Workers |', '|---|---:|---:|---:|', ...rows].join('\n'),
  );
});

function record(name: string, seen: readonly Seen[]): void {
  const statements = seen.filter((each) => !isControl(each)).length;
  table.push([name, statements, seen.length, new Set(seen.map(({ node }) => node)).size]);
}

describe('a read on a cluster', () => {
  const reads: readonly [string, () => string, number][] = [
    ['GET an OIDC profile info', () => oidcPath(fixture), 200],
    ['GET a password profile info', () => passwordPath(fixture), 200],
    ['GET a user', () => userOf(fixture.user), 200],
    ['GET a user with its links', () => `${userOf(fixture.user)}?include=${LINKS}`, 200],
    ['GET a user that does not exist', () => userOf(fixture.realm), 404],
    ['GET a realm', base, 200],
    ['a reverse lookup that finds a link', () => find('routed'), 200],
  ];
  test.each(reads)('%s is one statement on the worker of the realm', async (name, path, status) => {
    const seen = await statementsOf(() => expectStatus(service.get(path(), token), status));
    record(name, seen);
    expect(seen.map(({ node, text }) => [node.port, text.slice(0, 7).toLowerCase()])).toEqual([
      [own.port, 'select '],
    ]);
  });

  const ranges: readonly [string, () => string][] = [
    ['a reverse lookup that finds none', () => find('nobody')],
    ['a list of users', users],
    ['changes of a realm', () => `${base()}/changes`],
  ];
  test.each(ranges)('%s needs the worker of the realm alone', async (name, path) => {
    const seen = await statementsOf(() => expectStatus(service.get(path(), token), 200));
    record(name, seen);
    expect(new Set(seen.map(({ node }) => node.port))).toEqual(new Set([own.port]));
  });

  test('50 concurrent lookups on a cluster share statements, on the worker of the realm alone', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => createUser()));
    const seen = await statementsOf(() =>
      Promise.all(ids.map((id) => expectStatus(service.get(userOf(id), token), 200))),
    );
    record('50 lookups at once', seen);
    expect(new Set(seen.map(({ node }) => node.port))).toEqual(new Set([own.port]));
    expect(seen.length).toBeLessThan(50);
    const including = await statementsOf(() =>
      Promise.all(ids.map((id) => expectStatus(service.get(`${userOf(id)}?include=${LINKS}`, token), 200))),
    );
    record('50 lookups with links at once', including);
    expect(new Set(including.map(({ node }) => node.port))).toEqual(new Set([own.port]));
    expect(including.length).toBeLessThan(50);
  });
});

describe('a write on a cluster', () => {
  const writes: readonly [string, () => Promise<() => Promise<unknown>>][] = [
    ['POST a user', async () => () => createUser()],
    ['POST a user with an Idempotency-Key', async () => () => createUser({ 'Idempotency-Key': 'routed-1' })],
    [
      'POST a user again with its Idempotency-Key',
      async () => {
        const user = newUser();
        const send = () =>
          expectStatus(service.post(users(), token, user, { 'Idempotency-Key': 'routed-2' }), 201);
        await send();
        return send;
      },
    ],
    [
      'POST an OIDC profile info',
      async () => {
        const id = await createUser();
        const data = {
          type: 'user_authentication_oidc_profile_info',
          subject: `late-${id}`,
          issuer: ISSUER,
          oidc_profile_id: fixture.oidcProfile,
        };
        return () => expectStatus(service.post(linksOf(id), token, { data }), 201);
      },
    ],
    [
      'POST a user with two links',
      async () => {
        const [subject, username] = [`with-user-${names}`, `with-user-${names}`];
        const [oidc, password] = [fixture.oidcProfile, fixture.passwordProfile];
        const included = [
          { type: oidcProfileInfo.type, subject, issuer: ISSUER, oidc_profile_id: oidc },
          { type: passwordProfileInfo.type, username, password: 'a password', password_profile_id: password },
        ];
        return () => expectStatus(service.post(users(), token, { ...newUser(), included }), 201);
      },
    ],
    [
      'POST a batch of three writes',
      async () => {
        const path = userOf(await createUser());
        const requests = [
          { method: 'POST', path: users(), body: newUser() },
          { method: 'PUT', path, body: newUser() },
          { method: 'DELETE', path },
        ];
        return () => expectStatus(service.post(`${base()}/batch`, token, { requests }), 200);
      },
    ],
    [
      'POST a taken OIDC profile info',
      async () => {
        const data = {
          type: 'user_authentication_oidc_profile_info',
          subject: 'routed',
          issuer: ISSUER,
          oidc_profile_id: fixture.oidcProfile,
        };
        const id = await createUser();
        return () => expectStatus(service.post(linksOf(id), token, { data }), 422);
      },
    ],
    [
      'PUT a user',
      async () => {
        const id = await createUser();
        return () => expectStatus(service.put(userOf(id), token, newUser()), 200);
      },
    ],
    [
      'DELETE a user',
      async () => {
        const id = await createUser();
        return () => expectStatus(service.del(userOf(id), token), 204);
      },
    ],
  ];
  test.each(writes)(
    '%s needs the worker of the realm alone, with a one-phase commit',
    async (name, prepare) => {
      const request = await prepare();
      const seen = await statementsOf(request);
      record(name, seen);
      expect(new Set(seen.map(({ node }) => node.port))).toEqual(new Set([own.port]));
      expect(seen.filter(isTwoPhase)).toEqual([]);
    },
  );

  test('the creation of a realm on a cluster needs at most two workers', async () => {
    const data = { type: 'authentication-realm', name: 'Another' };
    const all = await service.token('realms:write');
    const seen = await statementsOf(() =>
      expectStatus(service.post(REALMS, all, { data }, { 'Idempotency-Key': 'routed-3' }), 201),
    );
    record('POST a realm with an Idempotency-Key', seen);
    expect(new Set(seen.map(({ node }) => node)).size).toBeLessThanOrEqual(2);
  });

  test('a grant of a token on a cluster needs the worker of the log of the installation alone', async () => {
    const client = await service.client('users:read');
    const seen = await statementsOf(async () => {
      await service.grant(client);
      // The entry is written behind the answer.
      await Bun.sleep(500);
    });
    record('a token', seen);
    expect(new Set(seen.map(({ node }) => node.port))).toEqual(new Set([home.port]));
  });
});
