import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { freshFolder } from './folder.ts';
import { realmLines } from './import_fixtures.ts';
import { runCommand, startCommand } from './processes.ts';
import { sendRequest } from './service.ts';
import { type ClientSecret, requestToken } from './token_request.ts';

/** Programs of this release and of earlier ones that serve one SQLite database. */

/** How many users with a link a filled database has. */
export const USERS = 5_000;
const READERS = 4;
const SCOPE = 'users:read users:write profile-infos:read profile-infos:write';

export async function createClientOf(
  authrealm: string,
  args: readonly string[],
  more: readonly string[],
): Promise<ClientSecret> {
  const { stdout, stderr, code } = await runCommand([
    ...[authrealm, 'client', 'create', '--name', 'n', '--json'],
    ...[...more, ...args],
  ]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** A database that this program created and filled. */
async function createFilledDatabase(authrealm: string) {
  const path = join(freshFolder(), 'served.db');
  const args = ['--database', `sqlite:${path}`];
  const run = async (...command: readonly string[]): Promise<string> => {
    const { stdout, stderr, code } = await runCommand([authrealm, ...command, ...args]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const { ids, lines } = realmLines();
  const users = Array.from({ length: USERS }, () => ({
    user: systemClock.mintId(),
    link: systemClock.mintId(),
  }));
  const all = [
    ...[lines.realm, lines.oidc, lines.passwords],
    ...users.flatMap(({ user, link }) => [
      { ...lines.user, id: user },
      { ...lines.link, id: link, user_authentication_info_id: user, subject: `subject-${link}` },
    ]),
  ];
  writeFileSync(`${path}.lines`, all.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await run('init');
  await run('import', `${path}.lines`);
  const client = await createClientOf(authrealm, args, ['--scope', SCOPE]);
  return { args, users, client, ids, lines };
}

/** Serves a database with this program; by default one that the program creates. */
export async function serveWith(
  authrealm: string,
  filled?: Awaited<ReturnType<typeof createFilledDatabase>>,
) {
  const database = filled ?? (await createFilledDatabase(authrealm));
  const { args, users, client, ids, lines } = database;
  const running = startCommand([authrealm, 'serve', '--port', '0', '--offline', ...args]);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  /** Sends requests with a token of this client, which this program has just granted. */
  async function as(credentials: ClientSecret) {
    const token = await requestToken(url, credentials);
    return (method: string, at: string, data?: object) =>
      sendRequest(url, method, at, { token, body: data && { data }, headers: undefined });
  }
  const collection = `/v2/authentication-realms/${ids.realm}/user-authentication-info`;
  const linksOf = (user: string) => `${collection}/${user}/user-authentication-oidc-profile-info`;
  const send = await as(client);
  const idOf = async (answer: Pick<Response, 'json'>) =>
    ((await answer.json()) as { data: { id: string } }).data.id;
  const person = { type: lines.user.type, name: 'Later', email: 'later@example.com' };
  const createUser = () => send('POST', collection, person);

  return {
    filled: database,
    url,
    as,
    database: args[1] ?? '',
    running,
    createUser,
    async totalOfUsers(): Promise<number> {
      const answer = await send('GET', `${collection}?page[limit]=1`);
      return ((await answer.json()) as { meta: { results: { total: number } } }).meta.results.total;
    },
    /** Looks up links without a pause until `end`, which returns the number of answers by status. */
    lookUpUntilEnd() {
      let isOver = false;
      const statuses = new Map<number, number>();
      const lookUp = async () => {
        for (let at = 0; !isOver; at += 1) {
          const { user, link } = users[at % USERS] as (typeof users)[number];
          const answer = await send('GET', `${linksOf(user)}/${link}`);
          const status = answer.status === 200 && (await idOf(answer)) !== link ? 0 : answer.status;
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      };
      const readers = Promise.all(Array.from({ length: READERS }, lookUp));
      return {
        found: () => statuses.get(200) ?? 0,
        async end(): Promise<ReadonlyMap<number, number>> {
          isOver = true;
          await readers;
          return statuses;
        },
      };
    },
    /** Creates a user with a link, gets the link, removes the user, and gets the link again. Returns the statuses. */
    async write(): Promise<readonly number[]> {
      const user = await createUser();
      const links = linksOf(await idOf(user.clone()));
      const { type, issuer, oidc_profile_id } = lines.link;
      const subject = `later-${systemClock.mintId()}`;
      const link = await send('POST', links, { type, issuer, oidc_profile_id, subject });
      const one = `${links}/${await idOf(link.clone())}`;
      const answers = [user, link, await send('GET', one)];
      answers.push(await send('DELETE', `${collection}/${await idOf(user)}`), await send('GET', one));
      return answers.map(({ status }) => status);
    },
  };
}
