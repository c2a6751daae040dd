import { createHash } from 'node:crypto';
import type { Flags } from '../../src/app/config/parse.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { oidcProfile, realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { secretLocation } from '../../src/records/format.ts';
import { DISCOVERY, type IssuerServer, json, startIssuer } from './issuers.ts';
import { insertRecord, type Service, startService } from './service.ts';
import { createSettingsRealms, type SettingsRealms } from './settings_realms.ts';
import type { Json } from './token_forge.ts';

/** Sign-in through a provider of a profile of the account realm: the requests of a storefront and of browsers. */

export const REDIRECT_URI = 'https://shop.example.com/callback';
export const REDIRECT_URI_WITH_QUERY = 'https://shop.example.com/callback?lang=en';
/** With characters that basic credentials encode. */
export const CLIENT_SECRET = 'a secret: of the shop';
export const CODE_VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
export const CODE_CHALLENGE = createHash('sha256').update(CODE_VERIFIER).digest('base64url');
export const STATE = 'a state of the storefront';
/** The query of a login, but for the profile. */
export const LOGIN = {
  client_id: 'account-management',
  redirect_uri: REDIRECT_URI,
  state: STATE,
  response_type: 'code',
  scope: 'openid email',
  code_challenge: CODE_CHALLENGE,
  code_challenge_method: 'S256',
};
export const PROFILE_PARAMETER = 'elasticpath_commerce_cloud_profile_id';

/** Changes of parameters: undefined removes one, a list gives it several times. */
export type Changes = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Place {
  readonly store: string;
  readonly realm: string;
  readonly profile: string;
}

export interface OidcWorld extends Place {
  readonly realm: Uuid;
  readonly profile: Uuid;
  readonly realms: SettingsRealms;
  readonly service: Service;
  readonly provider: IssuerServer;
  /** Publishes a discovery document of the provider, with these members changed. */
  describe(changes?: Json): void;
  setRedirectUris(...uris: readonly string[]): Promise<void>;
  login(changes?: Changes, at?: Partial<Place>): Promise<Response>;
  callback(query: Changes, cookie?: string, at?: Partial<Place>): Promise<Response>;
}

export async function createOidcProfile(db: OpenDatabase, of: Uuid, issuer: string, more: object = {}) {
  const id = systemClock.mintId();
  const location = secretLocation(oidcProfile, 'client_secret', [of, id]);
  await insertRecord(db, oidcProfile, [of, id], {
    ...{ name: 'Login', discovery_url: issuer + DISCOVERY, client_id: 'shop', issuer },
    client_secret: db.keyring.seal('oidc-client-secret', location, CLIENT_SECRET),
    ...more,
  });
  return id;
}

/** Starts a service with an account realm that has redirect URIs, and a profile of it. */
export async function startOidcSignIn(flags: Flags = {}): Promise<OidcWorld> {
  const provider = await startIssuer();
  const { issuer } = provider;
  const service = await startService({ allowPrivate: 'localhost 127.0.0.0/8', ...flags });
  const realms = await createSettingsRealms(service.db);
  const store = await service.db.engine.access.storeId();
  const profile = await createOidcProfile(service.db, realms.accounts, issuer);
  const token = await service.token('realms:write');
  const own: Place = { store, realm: realms.accounts, profile };
  const world: OidcWorld = {
    ...{ store, realm: realms.accounts, profile, realms, service, provider },
    describe(changes = {}) {
      const document = {
        ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/keys`, scopes_supported: ['openid', 'email', 'profile', 'phone'] },
        ...changes,
      };
      provider.routes.set(DISCOVERY, json(document));
    },
    async setRedirectUris(...redirect_uris) {
      const body = { data: { type: realm.type, redirect_uris } };
      const answer = await service.put(`/v2/authentication-realms/${realms.accounts}`, token, body);
      if (answer.status !== 200) throw new Error(await answer.text());
    },
    login: (changes, at) => visit(loginUrl(service.url, { ...own, ...at }, changes)),
    callback: (query, cookie, at) => visit(callbackUrl(service.url, { ...own, ...at }, query), cookie),
  };
  world.describe();
  await world.setRedirectUris(REDIRECT_URI, REDIRECT_URI_WITH_QUERY);
  return world;
}

/** Sends the request of a browser, which follows no redirect. */
export function visit(url: string, cookie?: string, request: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    redirect: 'manual',
    ...request,
    headers: cookie === undefined ? {} : { Cookie: cookie },
  });
}

export function loginUrl(url: string, { store, realm, profile }: Place, changes: Changes = {}): string {
  const query = queryOf({ [PROFILE_PARAMETER]: profile, ...LOGIN, ...changes });
  return `${url}/oidc-idp/login/stores/${store}/authentication-realms/${realm}?${query}`;
}

export function callbackUrl(url: string, { store, realm, profile }: Place, query: Changes): string {
  const path = `stores/${store}/authentication-realms/${realm}/oidc-profiles/${profile}`;
  return `${url}/oidc-idp/callback/${path}?${queryOf(query)}`;
}

export function discoveryUrl(url: string, { store, realm }: Omit<Place, 'profile'>, query = ''): string {
  return `${url}/oidc-idp/stores/${store}/authentication-realms/${realm}/.well-known/openid-configuration${query}`;
}

function queryOf(parameters: Changes): URLSearchParams {
  return new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().map((each): [string, string] => [name, each]),
    ),
  );
}

/** Where a browser is sent, and its cookie as it sends it back. */
export function redirectOf(answer: Response) {
  const location = answer.headers.get('location') ?? '';
  const query = new URLSearchParams(location.slice(location.indexOf('?') + 1));
  const [setCookie = ''] = answer.headers.getSetCookie();
  return { location, setCookie, cookie: setCookie.split(';', 1)[0] ?? '', query: Object.fromEntries(query) };
}

const NO_TRACE = [
  ['cache-control', 'no-store'],
  ['referrer-policy', 'no-referrer'],
  ['x-content-type-options', 'nosniff'],
] as const;

/** The answer as far as tests compare it. Throws where it lacks a header that every answer has. */
export async function outcomeOf(answer: Response): Promise<Record<string, unknown>> {
  const missing = NO_TRACE.filter(([name, value]) => answer.headers.get(name) !== value);
  if (missing.length > 0) throw new Error(`a header is missing: ${missing}`);
  const { status } = answer;
  if (status === 303) {
    const { location, query, setCookie } = redirectOf(answer);
    const { error_description: text, ...shown } = query;
    return {
      status,
      to: location.split('?')[0],
      ...shown,
      ...(setCookie ? { setCookie } : {}),
      ...(text ? { text } : {}),
    };
  }
  const body = (await answer.json()) as Record<string, string>;
  const { error, error_description: text, ...more } = body;
  return {
    status,
    error,
    text,
    isShape: JSON.stringify(more) === JSON.stringify({ errorDescription: text }),
  };
}
