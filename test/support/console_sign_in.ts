import { createConsoleLink } from '../../src/access/sessions/console_links.ts';
import type { Settings } from '../../src/app/config/parse.ts';
import { parseScopes, type Realms } from '../../src/model/principal.ts';
import { DISCOVERY, issuerEntry, issuersFile, json, startIssuer } from './issuers.ts';
import { LOOPBACK_RULES } from './outbound_servers.ts';
import type { Service } from './service.ts';

/** Signs in to the console of a service, as its page does. */

/** A one-time link, as the command prints it. */
export async function createLink(
  { db, clock }: Pick<Service, 'db' | 'clock'>,
  { scope = 'users:read', label = 'anna', realms = '*' as Realms } = {},
) {
  const scopes = parseScopes(scope);
  if (!scopes) throw new Error(`no scope ${scope}`);
  return createConsoleLink(db.engine.access, { label, scopes, realms }, clock);
}

/** Headers of a request from the page of the service. */
export function sameOrigin({ url }: Pick<Service, 'url'>): Record<string, string> {
  return { Origin: url, 'Sec-Fetch-Site': 'same-origin' };
}

export async function postConsoleToken(
  service: Pick<Service, 'url'>,
  data: object,
  headers: Record<string, string> = sameOrigin(service),
): Promise<Response> {
  return fetch(`${service.url}/console/token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ data }),
  });
}

export interface ConsoleSession {
  readonly access_token: string;
  readonly expires_in: number;
  readonly session_expires_in: number;
  readonly scope: string;
  readonly realms: '*' | readonly string[];
  readonly actor: string;
  readonly label: string;
}

export async function signIn(
  service: Service,
  rights: Parameters<typeof createLink>[1] = {},
): Promise<ConsoleSession> {
  const { code } = await createLink(service, rights);
  const answer = await postConsoleToken(service, { grant: 'link', code });
  if (!answer.ok) throw new Error(await answer.text());
  return ((await answer.json()) as { data: ConsoleSession }).data;
}

/** An identity provider for signing in to the console, with the name in the examples of the OpenAPI document. */
export async function startConsoleProvider(): Promise<{
  readonly settings: Partial<Settings>;
  stop(): void;
}> {
  const provider = await startIssuer();
  const { issuer } = provider;
  const document = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
  };
  provider.routes.set(DISCOVERY, json(document));
  const console = { client_id: 'console', client_secret: 'a secret of the console' };
  const file = issuersFile(issuerEntry(provider, { name: 'staff', console }));
  return {
    settings: { issuersFile: file, allowPrivate: LOOPBACK_RULES.allowPrivate ?? [] },
    stop: provider.stop,
  };
}

/** Console credentials for the requests of an OpenAPI client. */
export function consoleCredentials(service: Service) {
  return {
    code: async () => (await createLink(service)).code,
    token: async () => (await signIn(service)).access_token,
  };
}
