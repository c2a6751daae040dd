import { afterAll, beforeAll, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { realm as described } from '../../src/domain/resources.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { FULL_SCOPE, kindOf } from '../support/resource_cases.ts';
import { checkedResponse } from '../support/service.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';

/** The rights of a client to a realm end with the realm, for tokens already issued too. */

const REALMS = '/v2/authentication-realms';

let database: TestDatabase;
let served: ServiceProcess;
let token: string;

beforeAll(async () => {
  database = await freshDatabase();
  const all = JSON.parse((await runClientCreate(database, FULL_SCOPE, '--json')).stdout);
  served = await serveWithClient(database, all);
  token = await served.token();
});
afterAll(async () => {
  expect(await served.running.stop()).toBe(0);
});

interface Limited {
  readonly id: string;
  granted(): Promise<Response>;
}

async function limited(...realms: string[]): Promise<Limited> {
  const made = await runClientCreate(
    database,
    FULL_SCOPE,
    '--json',
    ...realms.flatMap((id) => ['--realm', id]),
  );
  const { client_id, client_secret } = JSON.parse(made.stdout);
  const form = { grant_type: 'client_credentials', client_id, client_secret };
  return {
    id: client_id,
    granted: () => fetch(`${served.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) }),
  };
}

/** A client that was made a moment ago is known within `accessTableAgeMsMax`. */
async function tokenOf(client: Limited): Promise<string> {
  for (;;) {
    const answer = await client.granted();
    if (answer.status === 200) return ((await answer.json()) as { access_token: string }).access_token;
    await Bun.sleep(50);
  }
}

async function call(method: string, below: string, bearer: string, data?: object): Promise<Response> {
  const answer = await fetch(`${served.url}${REALMS}${below}`, {
    method,
    headers: { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' },
    ...(data ? { body: JSON.stringify({ data }) } : {}),
  });
  return checkedResponse(answer, [bearer]);
}

async function newRealm(): Promise<string> {
  const home = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const made = await call('POST', '', token, kindOf(described).fresh(home));
  return ((await made.json()) as { data: { id: string } }).data.id;
}

async function listedRealms(bearer: string): Promise<readonly string[]> {
  const { data } = (await (await call('GET', '', bearer)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id).sort();
}

interface Told {
  readonly client_id: string;
  readonly realms: readonly string[] | '*';
  readonly state: string;
}

async function toldOf({ id }: Limited): Promise<Told | undefined> {
  const { stdout } = await runCommand([AUTHREALM, 'client', 'list', '--json', ...database.args]);
  return (JSON.parse(stdout) as Told[]).find(({ client_id }) => client_id === id);
}

const jane = { type: 'user_authentication_info', name: 'Jane', email: 'jane@example.com' };

const ENDS: [how: string, end: (realm: string) => Promise<void>][] = [
  ['a DELETE', async (realm) => expect((await call('DELETE', `/${realm}`, token)).status).toBe(204)],
  [
    'a purge by another process',
    async (realm) => {
      const purge = [AUTHREALM, 'purge', 'realm', realm, ...database.args];
      expect((await runCommand(purge)).code).toBe(0);
    },
  ],
];

test.each(ENDS)(
  'with %s',
  async (_how, end) => {
    const [lost, kept] = [await newRealm(), await newRealm()];
    const [one, two] = [await limited(lost), await limited(lost, kept)];
    const [ofOne, ofTwo] = [await tokenOf(one), await tokenOf(two)];
    const ofBoth = [ofOne, ofTwo];
    for (const bearer of ofBoth) expect((await call('GET', `/${lost}`, bearer)).status).toBe(200);
    expect(await listedRealms(ofTwo)).toEqual([lost, kept].sort());
    await end(lost);

    expect((await toldOf(one))?.realms).toEqual([]);
    expect((await toldOf(two))?.realms).toEqual([kept]);
    for (const bearer of ofBoth) {
      expect((await call('GET', `/${lost}`, bearer)).status).toBe(404);
      expect((await call('POST', `/${lost}/user-authentication-info`, bearer, jane)).status).toBe(404);
    }
    // A realm that is brought along under the same identifier is another one.
    const line = JSON.stringify({ type: 'authentication-realm', id: lost, name: 'Another' });
    const brought = await runCommand([AUTHREALM, 'import', '-', ...database.args], {}, line);
    expect(brought.code).toBe(0);
    await Bun.sleep(LIMITS.accessTableAgeMsMax);
    for (const bearer of ofBoth) {
      expect((await call('GET', `/${lost}`, bearer)).status).toBe(404);
      expect((await call('POST', `/${lost}/user-authentication-info`, bearer, jane)).status).toBe(404);
    }
    expect((await call('GET', `/${lost}`, token)).status).toBe(200);
    expect([await listedRealms(ofOne), await listedRealms(ofTwo)]).toEqual([[], [kept]]);
    expect((await call('POST', `/${kept}/user-authentication-info`, ofTwo, jane)).status).toBe(201);
    // One that has no realm left is a client still: it is asked, and finds nothing.
    expect((await one.granted()).status).toBe(200);
    expect((await toldOf(one))?.state).toBe('enabled');
    expect((await call('GET', `/${kept}`, await tokenOf(one))).status).toBe(404);

    expect(await database.query('select 1 from client_realm where realm_id = ?', lost)).toEqual([]);
    const examined = await runDoctorOn(database);
    expect([examined.healthy, examined.report('clients').findings]).toEqual([true, []]);
  },
  300_000,
);
