import { SCOPES } from '../../../src/domain/principal.ts';
import { type ConsoleWindow, openWindow } from '../../browser/console_window.ts';
import { REALM, userAt } from '../../support/population.ts';
import { AUTHREALM, runCommand, startCommand } from '../../support/processes.ts';

type Command = ReturnType<typeof startCommand>;

/** A service that runs in a process of its own, and a window that is signed in to its console. */
export interface Station {
  readonly name: string;
  readonly url: string;
  readonly realm: string;
  readonly window: ConsoleWindow;
  /** The ID of a user with a link at least; `chance` is from 0 up to 1. */
  userAt(chance: number): string;
  stop(): Promise<void>;
}

/** Runs a command for as long as a station needs it; where there comes to be none, it ends. */
async function running(
  words: readonly string[],
  enter: (command: Command) => Promise<Omit<Station, 'stop'>>,
): Promise<Station> {
  const command = startCommand([AUTHREALM, ...words]);
  const stop = () => command.stop().then(() => undefined);
  try {
    return { ...(await enter(command)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `authrealm demo`, entered by its door. */
export function demoStation(script: string): Promise<Station> {
  return running(['demo'], (command) => enterDemo(command, script));
}

async function enterDemo(command: Command, script: string): Promise<Omit<Station, 'stop'>> {
  const door = await command.line(/^http\S+\/demo$/);
  const [, realm = ''] = /authentication-realms\/([\w-]+)/.exec(command.output()) ?? [];
  const { origin: url } = new URL(door);
  const window = await entered(url, door, script);
  const users = await linkedUsers(window, realm);
  return {
    name: 'the demo',
    url,
    realm,
    window,
    userAt: (chance) => users[Math.floor(chance * users.length)] ?? '',
  };
}

/** `authrealm serve` on a database of the bench, entered by a link of `authrealm console link`. */
export function benchStation(words: readonly string[], users: number, script: string): Promise<Station> {
  return running(['serve', '--port', '0', ...words], (command) => enterBench(command, words, users, script));
}

async function enterBench(
  command: Command,
  words: readonly string[],
  users: number,
  script: string,
): Promise<Omit<Station, 'stop'>> {
  const url = (await command.line(/^listening on /)).slice('listening on '.length);
  const asked = ['console', 'link', '--scope', SCOPES.join(' '), '--base-url', url, '--json'];
  const { stdout, stderr } = await runCommand([AUTHREALM, ...asked, ...words]);
  if (stdout === '') throw new Error(stderr);
  const window = await entered(url, (JSON.parse(stdout) as { url: string }).url, script);
  return {
    name: `${users.toLocaleString('en')} users`,
    url,
    realm: REALM,
    window,
    userAt: (chance) => userAt(Math.floor(chance * users)).user,
  };
}

/** A window that has followed an address that lets in; `script` runs before any of its pages. */
async function entered(url: string, door: string, script: string): Promise<ConsoleWindow> {
  const window = await openWindow(url);
  await window.page.addInitScript(script);
  await window.page.goto(door);
  await window.page.locator('[data-left]').waitFor({ state: 'attached' });
  return window;
}

/** What a session is kept as, in the storage of its tab. */
const SESSION = 'authrealm.session';

/** Another window of the same session, as if nobody had ever been there: nothing is cached. */
export async function strangeWindow({ url, window }: Station, script: string): Promise<ConsoleWindow> {
  const kept = await window.page.evaluate(`sessionStorage.getItem('${SESSION}')`);
  const other = await openWindow(url);
  await other.page.addInitScript(script);
  await other.page.addInitScript(
    `if (location.origin === '${url}') sessionStorage.setItem('${SESSION}', ${JSON.stringify(kept)})`,
  );
  return other;
}

/** The users of a small realm who have an OIDC link. */
async function linkedUsers({ page }: ConsoleWindow, realm: string): Promise<readonly string[]> {
  const found = await page.evaluate(`(async () => {
    const { opening } = JSON.parse(sessionStorage.getItem('${SESSION}'));
    const headers = { Authorization: 'Bearer ' + opening.access_token };
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
