import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { oidcProfile } from '../../src/domain/resources.ts';
import { findPort } from '../support/daemons.ts';
import { createFixture, insertRecord, startService } from '../support/service.ts';
import { expectNoErrors, HOSTILE_TEXTS, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, PHONE } from './console_window.ts';

/** Provider status on the page of an OIDC profile, with a real provider and with faulty servers. */

setDefaultTimeout(BROWSER_TEST_MS);

const WELL_KNOWN = '/.well-known/openid-configuration';

const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>();

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const provider = new Provider(root).callback();
server.on('request', (request, response) => {
  (answers.get(request.url?.replace(WELL_KNOWN, '') ?? '') ?? provider)(request, response);
});
const service = await startService({ allowLoopbackDiscovery: 'true' });
const fixture = await createFixture(service.db);
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

/** Opens the page of a new profile with this URL and issuer. */
async function opened(discovery_url: string, issuer: string, at = service, realm = fixture.realm) {
  const id = at.clock.mintId();
  await insertRecord(at.db, oidcProfile, [realm, id], {
    name: 'Login',
    discovery_url,
    client_id: 'shop',
    issuer,
  });
  return openSignedIn(at, `#/realms/${realm}/oidc-profiles/${id}`, {
    scope: READ_SCOPE,
    view: { viewport: PHONE, scheme: 'dark' },
  });
}

const card = ({ page }: ConsoleWindow) => page.getByRole('region', { name: 'Provider status' });

async function expectSays(window: ConsoleWindow, ...texts: readonly (string | RegExp)[]): Promise<void> {
  for (const text of texts) await card(window).getByText(text).first().waitFor();
  await expectNoErrors(window);
  await window.close();
}

test('Provider status shows the discovery document of a real provider', async () => {
  const window = await opened(`${root}${WELL_KNOWN}`, root);
  await card(window).getByText('Its issuer matches this profile.').waitFor();
  const shown = await card(window).innerText();
  for (const word of [`${root}/auth`, `${root}/token`, `${root}/jwks`, 'openid', 'offline_access', 'code'])
    expect(shown).toContain(word);
  await expectSays(window, 'Responding', /in \d+ ms/);
});

test('Provider status shows a pending check and a failed one, and can check again', async () => {
  let release = (): void => undefined;
  answers.set('/slow', (_, response) => {
    release = () => response.writeHead(503).end();
  });
  const window = await opened(`${root}/slow${WELL_KNOWN}`, `${root}/slow`);
  await card(window).getByText('Contacting the provider…').waitFor();
  release();
  await card(window).getByText('The provider does not respond.').waitFor();
  expect(await window.violations()).toEqual([]);
  answers.set('/slow', (_, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ issuer: `${root}/slow` }));
  });
  await card(window).getByRole('button', { name: 'Check again' }).click();
  await expectSays(window, 'Its issuer matches this profile.', 'not given');
});

test('Provider status of a closed port says only that the provider does not respond', async () => {
  const url = `http://127.0.0.1:${findPort()}`;
  await expectSays(await opened(`${url}${WELL_KNOWN}`, url), 'The provider does not respond.');
});

test('Provider status shows both issuers when the provider names a different one', async () => {
  const window = await opened(`${root}${WELL_KNOWN}`, `${root}/before`);
  await expectSays(window, /names a different issuer\. This profile has/, `${root}/before`, root);
});

test('Provider status reports a discovery document without an issuer', async () => {
  answers.set('/nameless', (_, response) => {
    response.setHeader('Content-Type', 'application/json').end('{}');
  });
  const window = await opened(`${root}/nameless${WELL_KNOWN}`, `${root}/nameless`);
  await expectSays(window, /names no issuer/, 'not given');
});

test('Provider status shows markup in a discovery document as text', async () => {
  const { script, image, attribute, override } = HOSTILE_TEXTS;
  const document = {
    issuer: script,
    token_endpoint: attribute,
    jwks_uri: override,
    scopes_supported: [image, image],
  };
  answers.set('/strange', (_, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(document));
  });
  const window = await opened(`${root}/strange${WELL_KNOWN}`, `${root}/strange`);
  await expectSays(window, script, attribute, image, 'U+202E', /names a different issuer/);
});

describe('a provider that is not contacted', () => {
  test('Provider status says that an invalid discovery URL is not contacted', async () => {
    await expectSays(await opened(`${root}/else`, root), /does not end in/);
  });

  test('Provider status says that a service with --offline contacts no provider', async () => {
    const offline = await startService({ offline: 'true' });
    const { realm } = await createFixture(offline.db);
    await expectSays(await opened(`${root}${WELL_KNOWN}`, root, offline, realm), /runs with --offline/);
  });
});

test('Provider status reports a busy service, and retries by itself', async () => {
  const held: (() => void)[] = [];
  const json = (response: ServerResponse) =>
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ issuer: `${root}/busy` }));
  answers.set('/busy', (_, response) => void json(response));
  const url = `${root}/busy${WELL_KNOWN}`;
  const open = async () => {
    const window = await opened(url, `${root}/busy`);
    await card(window).getByText('Its issuer matches this profile.').waitFor();
    return window;
  };
  const windows = [await open(), await open()];
  const third = await open();
  answers.set('/busy', (_, response) => void held.push(() => json(response)));
  const check = (window: ConsoleWindow) => card(window).getByRole('button', { name: 'Check again' }).click();
  await Promise.all(windows.map(check));
  // A check without a response ends after LIMITS.outboundMsMax.
  while (held.length < 2) await Bun.sleep(5);
  await check(third);
  await card(third).getByText('The service is busy.').waitFor();
  answers.set('/busy', (_, response) => void json(response));
  for (const release of held) release();
  await third.expectError(/status of 503/);
  await card(third).getByText('Its issuer matches this profile.').waitFor();
  await third.close();
  for (const window of windows) await expectSays(window, 'Its issuer matches this profile.');
});
