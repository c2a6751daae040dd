import { deepEqual, equal } from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { Page, Request } from 'playwright-core';
import { openDatabase } from '../../src/app/open_database.ts';
import { oidcProfile, realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openWindow } from '../browser/console_window.ts';
import { HOST } from './daemons.ts';
import type { TestDatabase } from './database.ts';
import { atEnd } from './ending.ts';
import { DISCOVERY } from './issuers.ts';
import { CLIENT_SECRET, CODE_VERIFIER, LOGIN, STATE } from './oidc_sign_in.ts';
import { signedInOf } from './oidc_token_calls.ts';
import { runClientCreate } from './processes.ts';
import { signInOnPages } from './provider_pages.ts';
import { type ServiceProcess, serveWithClient } from './service_process.ts';
import { createSettingsRealms } from './settings_realms.ts';
import { ACCOUNT_TOKEN_HEADER, END_USER, requestTokens } from './sign_in.ts';
import { type ClientSecret, requestToken } from './token_request.ts';

/**
 * Sign-in through a real OpenID provider as a user and a storefront see it: in a browser, at two processes on one database. Browsers
 * come back from the provider to the second one, whose address is the base URL of both. Every step throws if something differs.
 */

/** The user, at each provider. */
export const ANNA = {
  ...{ login: 'anna', email: 'anna@example.com' },
  ...{ name: 'Anna Holm', given_name: 'Anna', family_name: 'Holm' },
};

export interface ProviderClient extends ClientSecret {
  readonly redirect_uri: string;
}

export interface JourneyProvider {
  readonly issuer: string;
  register(client: ProviderClient): Promise<void>;
  /** Signs Anna in at the pages of the provider. A browser shows the first of them. */
  signIn(page: Page): Promise<void>;
}

export interface ProviderJourney {
  readonly first: ServiceProcess;
  readonly second: ServiceProcess;
  /** Starts a process that may send requests to these private addresses alone. */
  serve(...allowed: readonly string[]): Promise<ServiceProcess>;
  /** Opens a browser without cookies. */
  openVisitor(): Promise<Page>;
  /** Where the storefront sends a browser to begin at a process. */
  loginAt(process: ServiceProcess): string;
  /** The path of the profile through which users sign in. */
  readonly profilePath: string;
  readonly client: ClientSecret;
  /** Creates a profile of the provider by a request to a process. */
  createProfile(process: ServiceProcess): Promise<Response>;
  /** Signs Anna in, at the pages of the provider if it shows one. Returns the processes that the browser visited. */
  signIn(page: Page, at: ServiceProcess): Promise<readonly string[]>;
  /** Sends the code with which a browser came back to the storefront to a process. */
  redeem(page: Page, at: ServiceProcess): Promise<Response>;
  /** Redeems the code, and looks the member up at the other process with the token. */
  memberOf(page: Page, at: ServiceProcess): Promise<Member>;
}

interface Member {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

interface CreatedProfile {
  readonly data: { readonly id: string };
  readonly links: { readonly 'authorization-endpoint': string; readonly 'callback-endpoint': string };
}

/** Starts an oidc-provider that knows Anna. */
export async function startOidcProvider(): Promise<JourneyProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  const { login: sub, ...claims } = ANNA;
  const answerFor = (...clients: readonly object[]) =>
    new Provider(issuer, {
      clients,
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      findAccount: () => ({ accountId: sub, claims: () => ({ sub, email_verified: true, ...claims }) }),
    }).callback();
  let answer = answerFor();
  server.on('request', (request, response) => answer(request, response));
  return {
    issuer,
    async register({ redirect_uri, ...client }) {
      answer = answerFor({ ...client, redirect_uris: [redirect_uri] });
    },
    signIn: (page) => signInOnPages(page, sub),
  };
}

export async function startProviderJourney(
  database: TestDatabase,
  provider: JourneyProvider,
): Promise<ProviderJourney> {
  const db = await openDatabase(database.settings(), systemClock);
  const { accounts } = await createSettingsRealms(db);
  await db.engine.close();
  const storefront = await createClient(database, 'sign-in sign-up', '--end-user-address', 'header');
  const allowed = `${new URL(provider.issuer).hostname}/32`;
  const second = await serve(database, storefront, [allowed]);
  const serveLike = (...networks: readonly string[]) =>
    serve(database, storefront, networks, '--base-url', second.url);
  const first = await serveLike(allowed);
  const shop = Bun.serve({ hostname: HOST, port: 0, fetch: () => new Response('The shop') });
  atEnd(() => shop.stop(true));
  const redirectUri = new URL('/callback', shop.url).href;

  const token = await requestToken(first.url, await createClient(database, 'realms:write profiles:write'));
  const realmPath = `/v2/authentication-realms/${accounts}`;
  const client = { client_id: `shop-${systemClock.mintId()}`, client_secret: CLIENT_SECRET };
  const createProfile: ProviderJourney['createProfile'] = (process) => {
    const discovery_url = provider.issuer + DISCOVERY;
    const data = { type: oidcProfile.type, name: 'Login', discovery_url, ...client };
    return process.post(`${realmPath}/oidc-profiles`, token, { data });
  };
  const created = await createProfile(first);
  equal(created.status, 201, await created.clone().text());
  const { data, links } = (await created.json()) as CreatedProfile;
  await provider.register({ ...client, redirect_uri: links['callback-endpoint'] });
  const change = { data: { type: realm.type, redirect_uris: [redirectUri] } };
  equal((await first.put(realmPath, token, change)).status, 200);

  const isBack = (url: string) => url.startsWith(`${redirectUri}?`);
  const journey: ProviderJourney = {
    ...{ first, second, serve: serveLike, client, createProfile },
    profilePath: `${realmPath}/oidc-profiles/${data.id}`,
    async openVisitor() {
      const { page } = await openWindow(second.url);
      // The pages of oidc-provider load a font.
      await page.route('https://fonts.googleapis.com/**', (route) =>
        route.fulfill({ contentType: 'text/css', body: '' }),
      );
      return page;
    },
    loginAt({ url }) {
      const { pathname, search } = new URL(links['authorization-endpoint']);
      return `${url}${pathname}${search}&${new URLSearchParams({ ...LOGIN, redirect_uri: redirectUri })}`;
    },
    async signIn(page, at) {
      const visited: string[] = [];
      const note = (request: Request) => {
        const { origin, pathname } = new URL(request.url());
        if (pathname.startsWith('/oidc-idp/')) visited.push(origin);
      };
      page.on('request', note);
      await page.goto(journey.loginAt(at));
      if (!isBack(page.url())) await provider.signIn(page);
      await page.waitForURL(({ href }) => isBack(href));
      page.off('request', note);
      return visited;
    },
    async redeem(page, at) {
      const { code, state, ...others } = Object.fromEntries(new URL(page.url()).searchParams);
      deepEqual([state, others], [STATE, {}]);
      return requestTokens(at, await at.token(), {
        data: {
          ...{ type: 'account_management_authentication_token', authentication_mechanism: 'oidc' },
          ...{ oauth_authorization_code: code, oauth_redirect_uri: redirectUri },
          oauth_code_verifier: CODE_VERIFIER,
        },
      });
    },
    async memberOf(page, at) {
      const { user, token: accountToken } = await signedInOf(await journey.redeem(page, at));
      const other = at === first ? second : first;
      const headers = { ...END_USER, [ACCOUNT_TOKEN_HEADER]: accountToken };
      const found = await other.get(`/v2/account-members/${user}`, await other.token(), headers);
      equal(found.status, 200, await found.clone().text());
      const { id, name, email } = ((await found.json()) as { data: Member }).data;
      equal(id, user);
      return { id, name, email };
    },
  };
  return journey;
}

async function createClient(
  database: TestDatabase,
  scope: string,
  ...options: readonly string[]
): Promise<ClientSecret> {
  const { code, stdout, stderr } = await runClientCreate(database, scope, '--json', ...options);
  equal(code, 0, stderr);
  return JSON.parse(stdout);
}

function serve(
  database: TestDatabase,
  client: ClientSecret,
  networks: readonly string[],
  ...options: readonly string[]
): Promise<ServiceProcess> {
  const allowed = networks.flatMap((network) => ['--allow-private', network]);
  return serveWithClient(database, client, [...options, ...allowed]);
}

/** Anna signs in for the first time, a second time, and in another browser: login, callback, token call and lookup at both processes. */
export async function signInTwiceAndElsewhere(journey: ProviderJourney): Promise<void> {
  const { first, second } = journey;
  const page = await journey.openVisitor();
  deepEqual(await journey.signIn(page, second), [second.url, second.url]);
  const member = await journey.memberOf(page, second);
  deepEqual(member, { id: member.id, name: ANNA.name, email: ANNA.email });
  deepEqual(await journey.signIn(page, first), [first.url, second.url]);
  deepEqual(await journey.memberOf(page, first), member);
  const other = await journey.openVisitor();
  deepEqual(await journey.signIn(other, first), [first.url, second.url]);
  deepEqual(await journey.memberOf(other, second), member);
  await Promise.all([page, other].map((each) => each.context().close()));
}

/** The answer of the provider is for the browser that began. Another one does not use it up, at either process. */
export async function completeInOtherBrowser(journey: ProviderJourney): Promise<void> {
  const { first, second } = journey;
  const page = await journey.openVisitor();
  await journey.signIn(page, first);
  const { request } = page.context();
  const next = async (url: string) => {
    const { location = '' } = (await request.get(url, { maxRedirects: 0 })).headers();
    return location;
  };
  // The provider knows Anna already.
  const answer = new URL(await next(await next(journey.loginAt(first))));
  const other = await journey.openVisitor();
  for (const { url } of [first, second])
    equal((await other.goto(url + answer.pathname + answer.search))?.status(), 400);
  await page.goto(answer.href);
  equal((await journey.memberOf(page, second)).email, ANNA.email);
  // The browser has no cookie of the sign-in any more.
  equal((await page.goto(answer.href))?.status(), 400);
  await Promise.all([page, other].map((each) => each.context().close()));
}

/** A process that may not send requests to the address of the provider creates no profile, begins no sign-in, and redeems no code. */
export async function signInWithoutPermission(journey: ProviderJourney): Promise<void> {
  const refusing = await journey.serve();
  const page = await journey.openVisitor();
  await page.goto(journey.loginAt(refusing));
  equal(new URL(page.url()).searchParams.get('error'), 'temporarily_unavailable');
  equal((await journey.createProfile(refusing)).status, 422);
  await journey.signIn(page, journey.first);
  equal((await journey.redeem(page, refusing)).status, 503);
  // Its provider was not asked for the code.
  equal((await journey.memberOf(page, journey.second)).email, ANNA.email);
  await page.context().close();
  await refusing.running.stop();
}
