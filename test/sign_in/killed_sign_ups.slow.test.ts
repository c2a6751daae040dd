import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { newPerson, startTokenCalls } from '../support/oidc_token_calls.ts';
import { killCommands } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { serveWithClient } from '../support/service_process.ts';
import {
  createPassword,
  enableSelfSignup,
  from,
  passwordBody,
  requestTokens,
  selfSignupBody,
} from '../support/sign_in.ts';

/** A service that is killed while it creates users, for sign-ins with a code and for self-signups. */

setDefaultTimeout(300_000);
afterAll(killCommands);

const ROUNDS = 12;
const KILL_MS_MAX = 60;
const seed = freshSeed();
const chance = seededRandom(seed);

const calls = await startTokenCalls();
const { service, realm } = calls;
const jack = await createPassword(service.db, realm);
await enableSelfSignup(service, await service.token('settings:write'));

/** Another process of the service. */
function startProcess() {
  const { clientId: client_id, secret: client_secret } = calls.client;
  const flags = ['--base-url', service.url, '--allow-private', 'localhost 127.0.0.0/8'];
  return serveWithClient(service.database, { client_id, client_secret }, flags);
}

let addresses = 0;
/** From an address that no other sign-up has. */
const signUp = (to: Parameters<typeof requestTokens>[0], token: string, username: string) => {
  addresses += 1;
  const body = selfSignupBody(jack.profile, username, { password: jack.password, email: username });
  return requestTokens(to, token, body, from(`198.51.100.${addresses}`));
};

/** The links of people in each table. */
const LINKS = { oidc_profile_info: 'subject', password_profile_info: 'username' };

/** The user and the link of a request exist if it was answered, else both or neither. Resolves to whether they exist. */
async function areThere(
  email: string,
  { table, link }: { readonly table: keyof typeof LINKS; readonly link: string },
  status: number | undefined,
): Promise<boolean> {
  // In one query: a request whose service was killed may still commit.
  const [found] = await service.database.query<{ users: number; links: number }>(
    `select (select count(*) from user_info where email = ?) as users,
      (select count(*) from ${table} where ${LINKS[table]} = ?) as links`,
    ...[email, link],
  );
  const { users, links } = { users: Number(found?.users), links: Number(found?.links) };
  expect([users, links]).toEqual(status === 201 || users > 0 ? [1, 1] : [0, 0]);
  return users > 0;
}

test(`a service that is killed leaves user and link, or neither, and the user can sign in afterwards (seed ${seed})`, async () => {
  let unanswered = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const people = [newPerson(), newPerson(), newPerson()];
    const codes: string[] = [];
    for (const person of people) codes.push(await calls.authorize(person));
    const usernames = ['a', 'b'].map((name) => `${name}-${process.pid}-${round}@example.com`);
    const killed = await startProcess();
    const token = await killed.token();
    const to = killed.withoutRetry;
    const sent = [
      ...codes.map((code) => calls.send(code, { token, to })),
      ...usernames.map((username) => signUp(to, token, username)),
    ];
    const statuses = Promise.all(sent.map((answer) => answer.then(statusOf, () => undefined)));
    await Bun.sleep((KILL_MS_MAX * (round + chance())) / ROUNDS);
    killed.running.process.kill('SIGKILL');
    await killed.running.process.exited;
    unanswered += (await statuses).filter((status) => status === undefined).length;
    await expectWhole(people, usernames, await statuses);
  }
  expect(unanswered).toBeGreaterThan(0);
  expect(await service.database.findInconsistencies()).toEqual([]);
});

const statusOf = ({ status }: Response) => status;

async function expectWhole(
  people: readonly ReturnType<typeof newPerson>[],
  usernames: readonly string[],
  statuses: readonly (number | undefined)[],
): Promise<void> {
  for (const [at, person] of people.entries()) {
    const email = String(person.email);
    const link = { table: 'oidc_profile_info', link: String(person.sub) } as const;
    await areThere(email, link, statuses[at]);
    // The code of the provider is spent: the person begins again.
    expect((await calls.signIn(person)).status).toBe(201);
    expect(await areThere(email, link, 201)).toBe(true);
  }
  for (const [at, username] of usernames.entries()) {
    const link = { table: 'password_profile_info', link: username } as const;
    const isTaken = await areThere(username, link, statuses[people.length + at]);
    expect((await signUp(service, calls.token, username)).status).toBe(isTaken ? 422 : 201);
    const signedIn = await requestTokens(service, calls.token, passwordBody({ ...jack, username }));
    expect(signedIn.status).toBe(201);
  }
}
