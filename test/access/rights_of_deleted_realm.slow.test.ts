import { afterAll, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { realm as realmResource } from '../../src/model/resources.ts';
import { freshDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { AUTHREALM, runAuthrealm, runClientCreate, runCommand } from '../support/processes.ts';
import { FULL_SCOPE, kindOf } from '../support/resource_cases.ts';
import { checkedResponse } from '../support/service.ts';
import { serveWithClient } from '../support/service_process.ts';

/** The rights of a client in a realm end with the realm, also for issued tokens. */

const REALMS = '/v2/authentication-realms';

const database = await freshDatabase();
const all = JSON.parse((await runClientCreate(database, FULL_SCOPE, '--json')).stdout);
const served = await serveWithClient(database, all);
const token = await served.token();
afterAll(async () => {
  expect(await served.running.stop()).toBe(0);
});

interface LimitedClient {
  readonly id: string;
  requestToken(): Promise<Response>;
}

async function createLimitedClient(...realms: string[]): Promise<LimitedClient> {
  const created = await runClientCreate(
    database,
    FULL_SCOPE,
    '--json',
    ...realms.flatMap((id) => ['--realm', id]),
  );
  const { client_id, client_secret } = JSON.parse(created.stdout);
  const form = { grant_type: 'client_credentials', client_id, client_secret };
  return {
    id: client_id,
    requestToken: () =>
      fetch(`${served.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) }),
  };
}

/** A new client is known to every process within `accessTableAgeMsMax`. */
async function tokenOf(client: LimitedClient): Promise<string> {
  for (;;) {
    const answer = await client.requestToken();
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
  const created = await call('POST', '', token, kindOf(realmResource).fresh(home));
  return ((await created.json()) as { data: { id: string } }).data.id;
}

async function listedRealms(bearer: string): Promise<readonly string[]> {
  const { data } = (await (await call('GET', '', bearer)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id).sort();
}

interface ListedClient {
  readonly client_id: string;
  readonly realms: readonly string[] | '*';
  readonly state: string;
}

async function listedClient({ id }: LimitedClient): Promise<ListedClient | undefined> {
  const { stdout } = await runAuthrealm(['client', 'list', '--json', ...database.args]);
  return (JSON.parse(stdout) as ListedClient[]).find(({ client_id }) => client_id === id);
}

const jane = { type: 'user_authentication_info', name: 'Jane', email: 'jane@example.com' };

const DELETIONS: [how: string, deleteRealm: (realm: string) => Promise<void>][] = [
  ['a DELETE', async (realm) => expect((await call('DELETE', `/${realm}`, token)).status).toBe(204)],
  [
    'a deletion in pages by another process',
    async (realm) => {
      const deletion = [AUTHREALM, 'delete', '--in-pages', '--yes', 'realm', realm, ...database.args];
      expect((await runCommand(deletion)).code).toBe(0);
    },
  ],
];

test.each(DELETIONS)(
  'the rights of clients in a realm end with %s of the realm',
  async (_how, deleteRealm) => {
    const [deleted, remaining] = [await newRealm(), await newRealm()];
    const [one, two] = [await createLimitedClient(deleted), await createLimitedClient(deleted, remaining)];
    const [ofOne, ofTwo] = [await tokenOf(one), await tokenOf(two)];
    const ofBoth = [ofOne, ofTwo];
    for (const bearer of ofBoth) expect((await call('GET', `/${deleted}`, bearer)).status).toBe(200);
    expect(await listedRealms(ofTwo)).toEqual([deleted, remaining].sort());
    await deleteRealm(deleted);

    expect((await listedClient(one))?.realms).toEqual([]);
    expect((await listedClient(two))?.realms).toEqual([remaining]);
    for (const bearer of ofBoth) {
      expect((await call('GET', `/${deleted}`, bearer)).status).toBe(404);
      expect((await call('POST', `/${deleted}/user-authentication-info`, bearer, jane)).status).toBe(404);
    }
    // A realm imported under the same ID is another realm.
    const line = JSON.stringify({ type: 'authentication-realm', id: deleted, name: 'Another' });
    const imported = await runAuthrealm(['import', '-', ...database.args], {}, line);
    expect(imported.code).toBe(0);
    await Bun.sleep(LIMITS.accessTableAgeMsMax);
    for (const bearer of ofBoth) {
      expect((await call('GET', `/${deleted}`, bearer)).status).toBe(404);
      expect((await call('POST', `/${deleted}/user-authentication-info`, bearer, jane)).status).toBe(404);
    }
    expect((await call('GET', `/${deleted}`, token)).status).toBe(200);
    expect([await listedRealms(ofOne), await listedRealms(ofTwo)]).toEqual([[], [remaining]]);
    expect((await call('POST', `/${remaining}/user-authentication-info`, ofTwo, jane)).status).toBe(201);
    // A client without realms still gets tokens, which find nothing.
    expect((await one.requestToken()).status).toBe(200);
    expect((await listedClient(one))?.state).toBe('enabled');
    expect((await call('GET', `/${remaining}`, await tokenOf(one))).status).toBe(404);

    expect(await database.query('select 1 from client_realm where realm_id = ?', deleted)).toEqual([]);
    const examined = await runDoctorOn(database);
    expect([examined.healthy, examined.report('clients').findings]).toEqual([true, []]);
  },
  300_000,
);
