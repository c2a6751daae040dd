import { join } from 'node:path';
import { runToEnd, sendJson } from '../../bench/peers/peer.ts';
import { installKeycloak } from '../../bench/peers/programs.ts';
import { findPort } from './daemons.ts';
import { atEnd } from './ending.ts';
import { sharedServer } from './postgres_server.ts';
import { startCommand } from './processes.ts';
import { ANNA, type JourneyProvider } from './provider_journey.ts';
import type { ClientSecret } from './token_request.ts';

/** A private address that no other server of the tests has. */
const ADDRESS = '127.0.0.2';
const ADMIN = { username: 'admin', password: 'the admin of Keycloak' };
/** Of Anna. */
export const PASSWORD = 'correct horse battery staple';
const REALM = 'staff';

export interface Keycloak extends JourneyProvider {
  /** An ID token for Anna, without a browser and without a nonce. */
  idToken(client: ClientSecret): Promise<string>;
  /** Sends a request to a path of the realm, as an administrator. */
  administrate(path: string, body: object, method?: string): Promise<void>;
  /** Stops it, and exports the realm into a folder. */
  exportRealm(folder: string): Promise<void>;
}

/** Starts Keycloak with a realm that knows Anna. `programs` is the folder in which it is installed for this run and the next ones. */
export async function startKeycloak(programs: string): Promise<Keycloak> {
  const program = join(await installKeycloak(programs), 'bin/kc.sh');
  const database = new URL(await (await sharedServer()).freshDatabase());
  const url = `http://${ADDRESS}:${findPort()}`;
  const environment = {
    KC_DB_URL: `jdbc:postgresql://${database.host}${database.pathname}`,
    KC_DB_USERNAME: database.username,
    KC_DB_PASSWORD: '',
    JAVA_OPTS_KC_HEAP: '-Xms256m -Xmx768m',
  };
  const running = startCommand(
    [
      ...[program, 'start', '--optimized', '--http-enabled=true'],
      ...[`--http-host=${ADDRESS}`, `--http-port=${new URL(url).port}`, `--hostname=${url}`],
    ],
    {
      ...environment,
      KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
      KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
    },
  );
  atEnd(() => running.stop());
  await running.line(/Listening on/);

  async function requestTokens(realm: string, form: Readonly<Record<string, string>>) {
    const body = new URLSearchParams({ grant_type: 'password', ...form });
    const endpoint = `${url}/realms/${realm}/protocol/openid-connect/token`;
    const answer = await fetch(endpoint, { method: 'POST', body });
    if (!answer.ok) throw new Error(`Keycloak granted no token: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { readonly access_token: string; readonly id_token: string };
  }
  async function send(path: string, body: object, method = 'POST'): Promise<void> {
    const { access_token } = await requestTokens('master', { client_id: 'admin-cli', ...ADMIN });
    const headers = { Authorization: `Bearer ${access_token}` };
    await sendJson(`${url}/admin/realms${path}`, body, { method, headers });
  }
  const { login: username, email, given_name: firstName, family_name: lastName } = ANNA;
  const user = { username, email, emailVerified: true, firstName, lastName, enabled: true };
  const credentials = [{ type: 'password', value: PASSWORD }];
  await send('', { realm: REALM, enabled: true, users: [{ ...user, credentials }] });
  return {
    issuer: `${url}/realms/${REALM}`,
    register: ({ client_id: clientId, client_secret: secret, redirect_uri }) =>
      send(`/${REALM}/clients`, {
        ...{ clientId, secret, redirectUris: [redirect_uri], directAccessGrantsEnabled: true },
        attributes: { 'pkce.code.challenge.method': 'S256' },
      }),
    async signIn(page) {
      await page.locator('#username').fill(username);
      await page.locator('#password').fill(PASSWORD);
      await page.locator('#kc-login').click();
    },
    administrate: (path, body, method) => send(`/${REALM}${path}`, body, method),
    async exportRealm(folder) {
      await running.stop();
      await runToEnd([program, 'export', '--optimized', '--dir', folder, '--realm', REALM], { environment });
    },
    async idToken({ client_id, client_secret }) {
      const client = { client_id, client_secret, scope: 'openid email' };
      return (await requestTokens(REALM, { ...client, username, password: PASSWORD })).id_token;
    },
  };
}
