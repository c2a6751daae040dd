import { createClient } from '../../src/access/clients/clients.ts';
import { type Flags, readSettings, type Settings } from '../../src/app/config/parse.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { type Service as Served, serve } from '../../src/app/service.ts';
import { CODE_MEMBERS } from '../../src/compat/oidc_sign_in.ts';
import { accountSettings } from '../../src/model/account_settings.ts';
import { FAULTS, type FaultCode, GRANT_FAULTS, type GrantFaultCode } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { changeOf } from '../../src/model/log/change.ts';
import { parseScopes, type Realms } from '../../src/model/principal.ts';
import type { AnyRecord, Key, Resource } from '../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Log, LogRecord } from '../../src/ops/process/log.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import { fileOf } from '../../src/ops/store/open.ts';
import { databaseOf, type TestDatabase } from './database.ts';
import { atEnd } from './ending.ts';
import { type MovableClock, movableClock } from './movable_clock.ts';
import { serveByProgram, TEST_PROGRAM, waitingClock } from './program_service.ts';
import { isOverloaded, sendWithRetry } from './retry.ts';

export { freshFolder, RUN_FOLDER } from './folder.ts';

/** A request body. */
export type Sendable = string | object | Uint8Array<ArrayBuffer> | ReadableStream;

export interface ClientCredentials {
  readonly clientId: string;
  readonly secret: string;
}

/** Sends requests with a bearer token. */
export interface HttpClient {
  get(path: string, token?: string, headers?: Record<string, string>): Promise<Response>;
  /** Objects and text are sent as JSON unless the headers set another type; bytes without a type. */
  post(path: string, token: string, body: Sendable, headers?: Record<string, string>): Promise<Response>;
  put(path: string, token: string, body: Sendable, headers?: Record<string, string>): Promise<Response>;
  del(path: string, token: string, headers?: Record<string, string>, body?: Sendable): Promise<Response>;
}

/**
 * A service in the process of the suite: real sockets, a real database, a log in memory. Requests answered as overloaded are
 * sent again after their Retry-After. Where AUTHREALM_TEST_PROGRAM names a program, that program serves the database instead,
 * and its log is complete after `stop`.
 */
export interface Service extends HttpClient {
  readonly url: string;
  readonly database: TestDatabase;
  readonly settings: Settings;
  readonly db: OpenDatabase;
  readonly clock: MovableClock;
  readonly log: readonly LogRecord[];
  readonly server: Served;
  /** An access token of a new client with these scopes and realms. */
  token(scope: string, realms?: Realms): Promise<string>;
  /** A new client with these scopes and realms. */
  client(scope: string, realms?: Realms): Promise<ClientCredentials>;
  /** Asks for an access token of a client. */
  requestGrant(client: ClientCredentials, headers?: Record<string, string>): Promise<Response>;
  /** An access token of a client. Throws if it is refused. */
  grant(client: ClientCredentials): Promise<string>;
  /** Sends a request to the token endpoint. */
  requestToken(form: Record<string, string>, headers?: Record<string, string>): Promise<Response>;
  /** Sends each request once, for tests that overload the service on purpose. */
  readonly withoutRetry: HttpClient;
  stop(): Promise<void>;
}

/** The path of the SQLite database of a service. */
export function databaseFile({ settings }: Pick<Service, 'settings'>): string {
  const file = fileOf(settings.database);
  if (file === undefined) throw new Error('the database of this service is not a file');
  return file;
}

const AS_IT_IS = (engine: Engine): Engine => engine;

/**
 * Starts a service on the database of the flags, or on a fresh one. `wrap` replaces the engine, to count calls or inject
 * failures. `more` overrides parsed settings, including combinations that the command line rejects. It stops with its test or file.
 */
export async function startService(
  flags: Flags = {},
  wrap: (engine: Engine) => Engine = AS_IT_IS,
  more: Partial<Settings> = {},
): Promise<Service> {
  if (TEST_PROGRAM !== undefined && (wrap !== AS_IT_IS || Object.keys(more).length > 0))
    throw new Error('this test needs a service in its own process');
  const database = await databaseOf(flags);
  const served = { ...database.flags, port: '0', ...flags };
  const settings = { ...readSettings(served, {}), ...more };
  const clock = TEST_PROGRAM === undefined ? movableClock() : waitingClock();
  const log: LogRecord[] = [];
  const memoryLog: Log = { write: (record) => log.push(record) };
  const db = await openDatabase(settings, clock);
  const server =
    TEST_PROGRAM === undefined
      ? await serve(settings, { ...db, engine: wrap(db.engine) }, memoryLog, clock)
      : await serveByProgram(TEST_PROGRAM, served, log);
  const { url } = server;
  const withoutRetry = openHttpClient(url);
  let isStopped = false;
  const service: Service = {
    url,
    database,
    settings,
    db,
    clock,
    log,
    server,
    async client(scope, realms = '*') {
      const scopes = parseScopes(scope);
      if (!scopes) throw new Error(`unknown scope ${scope}`);
      const rights = { scopes, realms, endUserAddress: 'none' } as const;
      const { client, secret } = await createClient(db.engine.access, 'test', rights, clock);
      clock.advance(1_000);
      return { clientId: client.clientId, secret };
    },
    token: async (scope, realms = '*') => service.grant(await service.client(scope, realms)),
    requestGrant({ clientId, secret }, headers) {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
      return service.requestToken(form, headers);
    },
    async grant(client) {
      const answer = await service.requestGrant(client);
      if (answer.status !== 200) throw new Error(`no token: ${answer.status}`);
      return ((await answer.json()) as { access_token: string }).access_token;
    },
    async requestToken(form, headers = {}) {
      const request = { method: 'POST', headers, body: new URLSearchParams(form) };
      const sent = [form.client_id ?? '', form.client_secret ?? '', ...Object.values(headers)];
      return checkedResponse(await fetch(`${url}/oauth/access_token`, request), sent);
    },
    ...retryWhenOverloaded(withoutRetry),
    withoutRetry,
    async stop() {
      isStopped = true;
      await server.stop();
      await db.engine.close();
      const bugs = log.filter((record) => record.event === 'fault' && record.code === 'internal');
      if (bugs.length > 0) throw new Error(`answered 500: ${JSON.stringify(bugs)}`);
    },
  };
  atEnd(() => isStopped || service.stop());
  return service;
}

/** Sends each request to a service once, always with these headers, and checks the shape of an error response. */
export function openHttpClient(url: string, always: Record<string, string> = {}): HttpClient {
  const send = async (method: string, path: string, { token, body, more }: Sending) => {
    const headers = { ...always, ...more };
    const { type, content } = encodeBody(body);
    const answer = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
      method,
      headers: { ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }), ...type, ...headers },
      redirect: 'manual',
      ...(content === undefined ? {} : { body: content }),
    });
    const bodyTexts = content === body ? [] : textsIn(body);
    const sent = [token ?? '', ...path.split(/[/?]/), ...Object.values(headers), ...bodyTexts];
    return checkedResponse(answer, sent);
  };
  return {
    get: (path, token, more) => send('GET', path, { token: token || undefined, more }),
    post: (path, token, body, more) => send('POST', path, { token, body, more }),
    put: (path, token, body, more) => send('PUT', path, { token, body, more }),
    del: (path, token, more, body) => send('DELETE', path, { token, body, more }),
  };
}

interface Sending {
  readonly token: string | undefined;
  readonly body?: Sendable | undefined;
  readonly more: Record<string, string> | undefined;
}

/** A body as it is sent, with its type. */
function encodeBody(body: Sendable | undefined) {
  if (body === undefined || body instanceof Uint8Array || body instanceof ReadableStream)
    return { type: {}, content: body };
  return {
    type: { 'Content-Type': 'application/json' },
    content: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** Sends requests answered as overloaded again. Streamed bodies are sent once. */
export function retryWhenOverloaded({ get, post, put, del }: HttpClient): HttpClient {
  const retry = (body: Sendable | undefined, send: () => Promise<Response>) =>
    body instanceof ReadableStream ? send() : sendWithRetry(send, isOverloaded);
  return {
    get: (...args) => retry(undefined, () => get(...args)),
    post: (...args) => retry(args[2], () => post(...args)),
    put: (...args) => retry(args[2], () => put(...args)),
    del: (...args) => retry(args[3], () => del(...args)),
  };
}

/** Every string in a value, and the names of members that the API does not have. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(Array.isArray(value) || ALLOWED_NAMES.has(name) ? [] : [name]),
    ...textsIn(inner),
  ]);
}

/** Member names that an error may repeat. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  ...['data', 'id', 'type', 'relationships', 'included', 'requests', 'method', 'path', 'body', 'if_match'],
  ...['scopes', 'realms', 'overlap_seconds', 'realm_id', 'user_id', 'authentication_mechanism'],
  ...['id_token', 'user_authentication_info_id', ...Object.keys(CODE_MEMBERS)],
  ...Object.keys(accountSettings().shape),
  ...RESOURCES.flatMap(({ members, inputs = {} }) => [...Object.keys(members), ...Object.keys(inputs)]),
]);

/** Long words of the API that an error may repeat. */
const ALLOWED_WORDS =
  /^(?:authentication-realms|merchant-realm-mappings|settings|password|self_signup|account_management_authentication_token|user-authentication-[a-z-]+|(?:oidc|password)-profiles|after_realm|after_id|application\/[a-z-]+)$/;
/** Values of `type`: an error may name the expected one. */
const RESOURCE_TYPES: ReadonlySet<string> = new Set(RESOURCES.map(({ type }) => type));

const statusOf = (code: string) => FAULTS[code as FaultCode]?.status ?? GRANT_FAULTS[code as GrantFaultCode];

interface ErrorEntry extends Readonly<Record<'status' | 'title' | 'detail' | 'code', string>> {
  readonly source?: { readonly pointer?: string; readonly parameter?: string };
}

/** The errors in the body of a response. */
export async function errorsOf(answer: Response): Promise<readonly ErrorEntry[]> {
  return ((await answer.clone().json()) as { errors: readonly ErrorEntry[] }).errors;
}

const FOR_BROWSERS = /^\{"error":"invalid_request","errorDescription":"([^"]+)","error_description":"\1"\}$/;

/**
 * Returns the response. Throws where an error response has not the documented shape, or repeats a value of the request.
 * With several errors, each must have a source. The code of an error has a row in a table of faults, with the same status.
 */
export async function checkedResponse(answer: Response, sent: readonly string[]): Promise<Response> {
  if (answer.status < 400) return answer;
  const body = await answer.clone().text();
  const errors = (await errorsOf(answer)) ?? [];
  const isComplete = ({ status, title, detail, code }: ErrorEntry) =>
    [status, `${statusOf(code)}`].every((each) => each === `${answer.status}`) && title && detail;
  const hasSource = ({ source }: ErrorEntry) => (source?.pointer ?? source?.parameter) !== undefined;
  const isValidList = errors.length === 1 || (errors.length > 1 && errors.every(hasSource));
  if (!FOR_BROWSERS.test(body) && (!isValidList || !errors.every(isComplete)))
    throw new Error(`the error response has not the documented shape: ${body}`);
  // The service echoes these two headers of a request after it has validated them.
  const echoed = ['x-request-id', 'access-control-allow-origin'];
  const output = body + JSON.stringify([...answer.headers].filter(([name]) => !echoed.includes(name)));
  const repeated = sent.find(
    (value) =>
      value.length >= 8 && !ALLOWED_WORDS.test(value) && !RESOURCE_TYPES.has(value) && output.includes(value),
  );
  if (repeated !== undefined) throw new Error(`the error response repeats ${repeated}: ${output}`);
  return answer;
}

/** A response as text, to compare: status, headers except X-Request-Id and Date, body. */
export async function comparableResponse(answer: Response): Promise<string> {
  const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date').sort();
  return JSON.stringify([answer.status, headers, await answer.text()]);
}

/** The lookups, for tests that apply to each of them. */
export const LOOKUPS = [
  { name: 'OIDC', path: oidcPath, id: 'oidcLink', scope: 'oidc-profile-infos:read' },
  { name: 'password', path: passwordPath, id: 'passwordLink', scope: 'password-profile-infos:read' },
  {
    name: 'password, un-versioned',
    path: (fixture: Fixture) => passwordPath(fixture).slice('/v2'.length),
    id: 'passwordLink',
    scope: 'password-profile-infos:read',
  },
] as const;

/** A realm with a profile of each kind, a user, and a link of each kind. */
export interface Fixture {
  readonly realm: Uuid;
  readonly user: Uuid;
  readonly oidcProfile: Uuid;
  readonly passwordProfile: Uuid;
  readonly oidcLink: Uuid;
  readonly passwordLink: Uuid;
  readonly subject: string;
  readonly username: string;
}

/** Creates a realm with profiles, a user and its links through the store, except records whose IDs are passed. */
export async function createFixture(db: OpenDatabase, existing: Partial<Fixture> = {}): Promise<Fixture> {
  const mint = systemClock.mintId;
  const ids = {
    realm: existing.realm ?? mint(),
    user: existing.user ?? mint(),
    oidcProfile: existing.oidcProfile ?? mint(),
    passwordProfile: existing.passwordProfile ?? mint(),
    oidcLink: existing.oidcLink ?? mint(),
    passwordLink: existing.passwordLink ?? mint(),
    subject: existing.subject ?? `auth0|${mint()}`,
    username: existing.username ?? `jane-${mint()}`,
  };
  if (!existing.realm) await insertRecord(db, realm, [ids.realm], realmMembers);
  if (!existing.oidcProfile) {
    await insertRecord(db, oidcProfile, [ids.realm, ids.oidcProfile], {
      name: 'Login',
      discovery_url: `${ISSUER}.well-known/openid-configuration`,
      client_id: 'shop',
      issuer: ISSUER,
    });
  }
  if (!existing.passwordProfile) {
    await insertRecord(db, passwordProfile, [ids.realm, ids.passwordProfile], {
      name: 'Passwords',
      username_format: 'any',
      enable_one_time_password_token: false,
    });
  }
  if (!existing.user) await insertRecord(db, user, [ids.realm, ids.user], userMembers);
  await insertRecord(db, oidcProfileInfo, [ids.realm, ids.user, ids.oidcLink], {
    subject: ids.subject,
    issuer: ISSUER,
    oidc_profile_id: ids.oidcProfile,
  });
  await insertRecord(db, passwordProfileInfo, [ids.realm, ids.user, ids.passwordLink], {
    username: ids.username,
    password_profile_id: ids.passwordProfile,
    password_hash: PASSWORD_HASH,
  });
  return ids;
}

export const ISSUER = 'https://login.example.com/';
/** The hash of no known password; tests search output for it. */
export const PASSWORD_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$Zm9yYmlkZGVuLXRvLWxlYWstYW55d2hlcmUtb3V0';
export const realmMembers = { name: 'Shop', redirect_uris: [], duplicate_email_policy: 'allowed' };
export const userMembers = {
  name: 'Jane Doe',
  email: 'jane@example.com',
  given_name: 'Jane',
  middle_name: null,
  // Long enough not to be in random bytes: an erasure searches the file for it.
  family_name: 'Doering',
  creation_status: 'COMPLETE',
  ...{ email_vouched: true, enabled: true },
};

/** A record with these members, created now. */
export function buildRecord(key: Key, members: Record<string, unknown>): AnyRecord {
  const at = systemClock.now();
  return {
    id: key.at(-1) as Uuid,
    ...members,
    created_at: at,
    updated_at: at,
    revision: systemClock.mintRevision(),
  };
}

/** The insert of a record, with its change. */
export function insertOf<R extends Resource>(resource: R, key: Key, record: AnyRecord) {
  const origin = { actor: 'test', requestId: undefined, address: undefined, at: record.created_at };
  const change = changeOf(resource, 'created', { key, revision: record.revision }, origin);
  return { op: 'insert', resource, key, record, change } as const;
}

/** Inserts a record and its change; throws where the store rejects it. */
export async function insertRecord(
  db: OpenDatabase,
  resource: Resource,
  key: Key,
  members: Record<string, unknown>,
) {
  const record = buildRecord(key, members);
  const result = await db.engine.records.commit([insertOf(resource, key, record)]);
  if (result.kind !== 'written') throw new Error(JSON.stringify(result));
  return record;
}

/** The paths of the two lookups. */
export function oidcPath({ realm, user, oidcLink }: Fixture): string {
  return `/v2/authentication-realms/${realm}/user-authentication-info/${user}/user-authentication-oidc-profile-info/${oidcLink}`;
}

export function passwordPath({ realm, user, passwordLink }: Fixture): string {
  return `/v2/authentication-realms/${realm}/user-authentication-info/${user}/user-authentication-password-profile-info/${passwordLink}`;
}
