import { SCOPES } from '../../../src/model/principal.ts';
import { type ConsoleWindow, openWindow } from '../../browser/console_window.ts';
import { REALM, userAt } from '../../support/population.ts';
import { AUTHREALM, runCommand, startCommand } from '../../support/processes.ts';

type Command = ReturnType<typeof startCommand>;

/** A service in a process of its own, and a window that is signed in to its console. */
export interface ViewTarget {
  readonly name: string;
  readonly url: string;
  readonly realm: string;
  readonly window: ConsoleWindow;
  /** The ID of a user with at least one link; `chance` is from 0 to 1, exclusive. */
  userAt(chance: number): string;
  stop(): Promise<void>;
}

/** Starts a command for a target, and stops it when signing in fails. */
async function withCommand(
  words: readonly string[],
  enter: (command: Command) => Promise<Omit<ViewTarget, 'stop'>>,
): Promise<ViewTarget> {
  const command = startCommand([AUTHREALM, ...words]);
  const stop = () => command.stop().then(() => undefined);
  try {
    return { ...(await enter(command)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `authrealm demo`, signed in by the printed link. */
export function openDemoTarget(script: string): Promise<ViewTarget> {
  return withCommand(['demo'], (command) => signInToDemo(command, script));
}

async function signInToDemo(command: Command, script: string): Promise<Omit<ViewTarget, 'stop'>> {
  const signInUrl = await command.line(/^http\S+\/demo$/);
  const [, realm = ''] = /authentication-realms\/([\w-]+)/.exec(command.output()) ?? [];
  const { origin: url } = new URL(signInUrl);
  const window = await signIn(url, signInUrl, script);
  const users = await linkedUsers(window, realm);
  return {
    name: 'the demo',
    url,
    realm,
    window,
    userAt: (chance) => users[Math.floor(chance * users.length)] ?? '',
  };
}

/** `authrealm serve` on a bench database, signed in by a link of `authrealm console link`. */
export function openBenchTarget(
  words: readonly string[],
  users: number,
  script: string,
): Promise<ViewTarget> {
  return withCommand(['serve', '--port', '0', ...words], (command) =>
    signInToBench(command, words, users, script),
  );
}

async function signInToBench(
  command: Command,
  words: readonly string[],
  users: number,
  script: string,
): Promise<Omit<ViewTarget, 'stop'>> {
  const url = (await command.line(/^listening on /)).slice('listening on '.length);
  const linkCommand = ['console', 'link', '--scope', SCOPES.join(' '), '--base-url', url, '--json'];
  const { stdout, stderr } = await runCommand([AUTHREALM, ...linkCommand, ...words]);
  if (stdout === '') throw new Error(stderr);
  const window = await signIn(url, (JSON.parse(stdout) as { url: string }).url, script);
  return {
    name: `${users.toLocaleString('en')} users`,
    url,
    realm: REALM,
    window,
    userAt: (chance) => userAt(Math.floor(chance * users)).user,
  };
}

/** Opens a sign-in link in a new window; `script` runs before the scripts of every page. */
async function signIn(url: string, signInUrl: string, script: string): Promise<ConsoleWindow> {
  const window = await openWindow(url);
  await window.page.addInitScript(script);
  await window.page.goto(signInUrl);
  await window.page.locator('[data-left]').waitFor({ state: 'attached' });
  return window;
}

/** The session storage key of the console's session. */
const SESSION = 'authrealm.session';

/** Another window of the same session, with an empty cache. */
export async function uncachedWindow({ url, window }: ViewTarget, script: string): Promise<ConsoleWindow> {
  const session = await window.page.evaluate(`sessionStorage.getItem('${SESSION}')`);
  const other = await openWindow(url);
  await other.page.addInitScript(script);
  await other.page.addInitScript(
    `if (location.origin === '${url}') sessionStorage.setItem('${SESSION}', ${JSON.stringify(session)})`,
  );
  return other;
}

/** The users of a realm that have a link. */
async function linkedUsers({ page }: ConsoleWindow, realm: string): Promise<readonly string[]> {
  const found = await page.evaluate(`(async () => {
    const { grant } = JSON.parse(sessionStorage.getItem('${SESSION}'));
    const headers = { Authorization: 'Bearer ' + grant.access_token };
    const list = async (path) => (await (await fetch(path, { headers })).json()).data.map(({ id }) => id);
    const users = 'v2/authentication-realms/${realm}/user-authentication-info';
    const linked = [];
    for (const id of await list(users + '?page[limit]=100')) {
      const links = await list(users + '/' + id + '/user-authentication-oidc-profile-info');
      if (links.length > 0) linked.push(id);
    }
    return linked;
  })()`);
  if (!Array.isArray(found) || found.length === 0) throw new Error('no user of the demo has a link');
  return found as readonly string[];
}
