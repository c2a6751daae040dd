import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { endBrowser } from '../browser/browser.ts';
import { openUserPage } from '../browser/shop_pages.ts';
import { findPort, HOST } from '../support/daemons.ts';
import { atEnd, endFile } from '../support/ending.ts';
import { freshFolder, RUN_FOLDER } from '../support/folder.ts';
import { signInOnPages } from '../support/provider_pages.ts';
import { startProviderService } from '../support/provider_service.ts';
import type { ClientCredentials } from '../support/service.ts';
import { createSignInClient } from '../support/sign_in.ts';

/**
 * Unmodified clients sign a person in through a provider, on their own pages in Chromium (docs/clients.md): `epcc login oidc`, from Go
 * modules or from the checkout `--epcc FOLDER`; and with `--storefront FOLDER` the storefront `examples/core` of
 * elasticpath/composable-frontend in that folder, where its packages are installed. Prints the requests that each sends. Of a whole store
 * only what this service has is real; carts and the catalogue are empty.
 */

const EPCC = 'github.com/elasticpath/epcc-cli@v0.15.0';
const FIXTURES = join(import.meta.dir, '../fixtures');
const CERTIFICATE = join(FIXTURES, 'localhost.cert.pem');
const OURS =
  /^\/(?:oauth|oidc-idp|\.well-known|v2\/(?:settings|account-members|accounts|authentication-realms))\b/;

const { values: options } = parseArgs({
  options: { epcc: { type: 'string' }, storefront: { type: 'string' } },
});

let target = '';
/** The requests since it was emptied. */
const seen: string[] = [];

/** The URL that the clients call, which is https: the storefront knows no other. Browsers follow links to the service itself. */
const router = Bun.serve({
  hostname: HOST,
  port: 0,
  tls: { cert: Bun.file(CERTIFICATE), key: Bun.file(join(FIXTURES, 'localhost.key.pem')) },
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    const body = await request.text();
    const isOurs = OURS.test(pathname);
    const sent = {
      ...({ method, headers, redirect: 'manual', decompress: false } as const),
      ...(body === '' ? {} : { body }),
    };
    const answer = isOurs ? await fetch(target + pathname + search, sent) : emptyStore(method, pathname);
    const content = await answer.arrayBuffer();
    const type = headers.get('content-type');
    const line = [answer.status, method, pathname + search, ...(type ? [type, body] : [])].join(' ');
    seen.push(isOurs ? line : `${line} (not of this service)`);
    const { status } = answer;
    return new Response(content.byteLength > 0 ? content : null, { status, headers: answer.headers });
  },
});
atEnd(() => router.stop(true));

/** A cart that was just created, or an empty list. */
function emptyStore(method: string, path: string): Response {
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  const cart = { id: 'cart', type: 'cart', meta: { timestamps: { expires_at } } };
  const isCart = method === 'POST' || /\/carts\/\w+$/.test(path);
  return Response.json({ data: isCart ? cart : [] }, { status: method === 'POST' ? 201 : 200 });
}

/** Runs a command to its end. */
async function run(command: readonly string[], cwd: string, env: Record<string, string>): Promise<void> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed`);
}

/** What the page of a client shows of the user. */
interface SignedIn {
  readonly name: string | undefined;
  readonly account: string | undefined;
}

/** The page of the client that was started last. */
let page: Page | undefined;

/** Opens the page as soon as the program listens. */
async function openPage(url: string, isRunning: () => boolean): Promise<Page> {
  page = await openUserPage();
  for (;;) {
    try {
      await page.goto(url);
      return page;
    } catch (error) {
      if (!isRunning() || !/ERR_CONNECTION_REFUSED/.test(String(error))) throw error;
      await Bun.sleep(100);
    }
  }
}

function start(command: readonly string[], cwd: string, env: Record<string, string>) {
  const child = Bun.spawn([...command], { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  atEnd(() => child.kill());
  return child;
}

async function signInByEpcc(port: number, { clientId, secret }: ClientCredentials) {
  const home = freshFolder();
  const program = join(home, 'epcc-cli');
  if (options.epcc === undefined) await run(['go', 'install', EPCC], home, { GOBIN: home });
  else await run(['go', 'build', '-o', program], options.epcc, {});
  const child = start([program, 'login', 'oidc', '--port', String(port)], home, {
    // Without xdg-open: the page is opened here.
    ...{ HOME: home, PATH: home, SSL_CERT_FILE: CERTIFICATE },
    ...{ EPCC_API_BASE_URL: router.url.origin, EPCC_CLIENT_ID: clientId, EPCC_CLIENT_SECRET: secret },
  });
  const page = await openPage(`http://localhost:${port}/`, () => child.exitCode === null);
  await page.getByRole('button', { name: 'Login' }).click();
  await signInOnPages(page, 'anna');
  await page.getByText('Authentication With Identity Provider Successful').waitFor();
  await page.getByRole('button', { name: 'GO' }).click();
  await page.getByText('Authentication Complete').waitFor();
  const [name, account] = await page.locator('td').allInnerTexts();
  const exitCode = await child.exited;
  if (exitCode !== 0) throw new Error(`epcc exited with ${exitCode}`);
  return { name, account };
}

async function signInByStorefront(folder: string, port: number, clientId: string) {
  const next = join(folder, 'node_modules/.bin/next');
  if (!existsSync(next)) throw new Error(`${next} does not exist: install the packages of ${folder}`);
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: freshFolder(), NEXT_TELEMETRY_DISABLED: '1' },
    ...{ NODE_EXTRA_CA_CERTS: CERTIFICATE, NEXT_PUBLIC_EPCC_ENDPOINT_URL: router.url.host },
    ...{ NEXT_PUBLIC_EPCC_CLIENT_ID: clientId, NEXT_PUBLIC_COOKIE_PREFIX_KEY: 'shop' },
    ...{ NEXT_PUBLIC_SITE_NAME: 'Shop', NEXT_PUBLIC_PASSWORD_PROFILE_ID: crypto.randomUUID() },
  };
  await run([next, 'build'], folder, env);
  const child = start([next, 'start', '--port', String(port)], folder, env);
  const page = await openPage(`http://localhost:${port}/en/login`, () => child.exitCode === null);
  await page.getByRole('button', { name: 'Login with Login' }).click();
  await signInOnPages(page, 'anna');
  await page.waitForURL(`http://localhost:${port}/en`);
  const cookies = await page.context().cookies();
  const cookie = cookies.find(({ name }) => name === 'shop_ep_account_member_token');
  const { selected, accounts } = JSON.parse(decodeURIComponent(cookie?.value ?? '{}'));
  return { name: accounts[selected].account_name, account: selected };
}

const ports = { epcc: findPort(), storefront: findPort() };
const { service, accounts, buyers } = await startProviderService([
  `http://localhost:${ports.epcc}/callback`,
  `http://localhost:${ports.storefront}/oidc`,
]);
target = service.url;
const key = await createSignInClient(service, {
  scope: 'settings:read profiles:read sign-in sign-up',
  endUserAddress: 'none',
  implicitScopes: new Set(['settings:read', 'profiles:read', 'sign-in', 'sign-up']),
  implicitRealms: new Set([accounts, buyers]),
  ratePerAddress: { requests: 1_000, seconds: 60 },
});
let failed = 0;
const accountsSeen: string[] = [];

/** Prints what a client reached, and what it sent. */
async function report(name: string, signIn: () => Promise<SignedIn>): Promise<void> {
  try {
    const signedIn = await signIn();
    console.log(`${name}: ${JSON.stringify(signedIn)}`);
    if (signedIn.name !== 'Anna Holm' || !signedIn.account) throw new Error('another user is signed in');
    accountsSeen.push(signedIn.account);
  } catch (error) {
    failed += 1;
    console.log(`${name}: ${error}\nthe page ${page?.url()}: ${await page?.innerText('body')}`);
  }
  console.log(seen.splice(0).join('\n'));
}

try {
  await report(EPCC, () => signInByEpcc(ports.epcc, key));
  const { storefront } = options;
  if (storefront === undefined)
    console.log('the storefront was skipped: give --storefront FOLDER, examples/core of composable-frontend');
  else await report('the storefront', () => signInByStorefront(storefront, ports.storefront, key.clientId));
} finally {
  await endBrowser();
  await endFile();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}
const isSame = new Set(accountsSeen).size <= 1;
console.log(`${failed} clients failed`);
if (accountsSeen.length === 2) console.log(`both signed in ${isSame ? 'the same user' : 'different users'}`);
process.exit(failed === 0 && isSame ? 0 : 1);
