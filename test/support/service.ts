import { createClient } from '../../src/auth/clients/clients.ts';
import { type Flags, readSettings, type Settings } from '../../src/config/parse.ts';
import { changeOf } from '../../src/domain/change.ts';
import type { Clock, Uuid } from '../../src/domain/id.ts';
import { parseScopes, type Realms } from '../../src/domain/principal.ts';
import type { AnyRecord, Key, Resource } from '../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Log, LogRecord } from '../../src/platform/log.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import { type Service as Served, serve } from '../../src/service/service.ts';
import type { Engine } from '../../src/store/open.ts';
import { fileOf } from '../../src/store/open.ts';
import { databaseOf, type TestDatabase } from './database.ts';
import { isOverloaded, sendWithRetry } from './retry.ts';

export { freshFolder, RUN_FOLDER } from './folder.ts';

/** The real clock, moved by hand. */
export interface MovableClock extends Clock {
  advance(milliseconds: number): void;
}

export function movableClock(): MovableClock {
  let offset = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
    advance: (milliseconds) => {
      offset += milliseconds;
    },
  };
}

/** What a test sends as a body. */
export type Sendable = string | object | Uint8Array<ArrayBuffer> | ReadableStream;

/** Requests, each with the rights of a token. */
export interface HttpClient {
  get(path: string, token?: string, headers?: Record<string, string>): Promise<Response>;
  /** An object or text goes as JSON, unless the headers say otherwise; bytes go without a type. */
  post(path: string, token: string, body: Sendable, headers?: Record<string, string>): Promise<Response>;
  put(path: string, token: string, body: Sendable, headers?: Record<string, string>): Promise<Response>;
  del(path: string, token: string, headers?: Record<string, string>, body?: Sendable): Promise<Response>;
}

/**
 * A running service of the suite's own process: real sockets, a real database, a log kept in memory. Where it has no room
 * for a request, that is sent again when it says so.
 */
export interface Service extends HttpClient {
  readonly url: string;
  readonly database: TestDatabase;
  readonly settings: Settings;
  readonly db: OpenDatabase;
  readonly clock: MovableClock;
  readonly log: readonly LogRecord[];
  readonly server: Served;
  /** The token of a new client with these rights. */
  token(scope: string, realms?: Realms): Promise<string>;
  /** A new client with these rights. */
  client(scope: string, realms?: Realms): Promise<{ clientId: string; secret: string }>;
  /** Asks the token endpoint. */
  requestToken(form: Record<string, string>, headers?: Record<string, string>): Promise<Response>;
  /** Sends each request once: for whoever asks for more than there is room for, or says that something goes on meanwhile. */
  readonly withoutRetry: HttpClient;
  stop(): Promise<void>;
}

/** The file that a service of the suite has its records in. */
export function databaseFile({ settings }: Pick<Service, 'settings'>): string {
  const file = fileOf(settings.database);
  if (file === undefined) throw new Error('the database of this service has no file');
  return file;
}

/**
 * On a fresh database, unless the flags name one; `wrap` puts something between the service and its store: a counter, or a
 * failure. `more`: settings that a command line refuses together.
 */
export async function startService(
  flags: Flags = {},
  wrap: (engine: Engine) => Engine = (engine) => engine,
  more: Partial<Settings> = {},
): Promise<Service> {
  const database = await databaseOf(flags);
  const settings = { ...readSettings({ ...database.flags, port: '0', ...flags }, {}), ...more };
  const clock = movableClock();
  const log: LogRecord[] = [];
  const keep: Log = { write: (record) => log.push(record), written: async () => undefined };
  const db = await openDatabase(settings, clock);
  const server = await serve(settings, { ...db, engine: wrap(db.engine) }, keep, clock);
  const { url } = server;
  const once = openHttpClient(url);
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
      if (!scopes) throw new Error(`no scope ${scope}`);
      const { client, secret } = await createClient(db.engine.access, 'test', { scopes, realms }, clock);
      clock.advance(1_000);
      return { clientId: client.clientId, secret };
    },
    async token(scope, realms = '*') {
      const { clientId, secret } = await service.client(scope, realms);
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
      const answer = (await (await service.requestToken(form)).json()) as { access_token: string };
      return answer.access_token;
    },
    requestToken: async (form, headers = {}) =>
      checkedResponse(
        await fetch(`${url}/oauth/access_token`, {
          method: 'POST',
          headers,
          body: new URLSearchParams(form),
        }),
        [form.client_id ?? '', form.client_secret ?? '', ...Object.values(headers)],
      ),
    ...retryWhenOverloaded(once),
    withoutRetry: once,
    async stop() {
      await server.stop();
      await db.engine.close();
      const bugs = log.filter((record) => record.event === 'fault' && record.code === 'internal');
      if (bugs.length > 0) throw new Error(`answered 500: ${JSON.stringify(bugs)}`);
    },
  };
  return service;
}

/** Requests to a service, each sent once, and with these headers. */
export function openHttpClient(url: string, always: Record<string, string> = {}): HttpClient {
  const send = (method: string, path: string, { headers, ...sending }: RequestOptions) =>
    sendRequest(url, method, path, { ...sending, headers: { ...always, ...headers } });
  return {
    get: async (path, token, more = {}) => {
      const headers = { ...always, ...more };
      const answer = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
        headers: { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...headers },
        redirect: 'manual',
      });
      return checkedResponse(answer, [token ?? '', ...path.split(/[/?]/), ...Object.values(headers)]);
    },
    post: (path, token, body, headers) => send('POST', path, { token, body, headers }),
    put: (path, token, body, headers) => send('PUT', path, { token, body, headers }),
    del: (path, token, headers, body) => send('DELETE', path, { token, body, headers }),
  };
}

/** The same, sent again where there was no room. What streams goes once. */
export function retryWhenOverloaded({ get, post, put, del }: HttpClient): HttpClient {
  const again = (body: Sendable | undefined, send: () => Promise<Response>) =>
    body instanceof ReadableStream ? send() : sendWithRetry(send, isOverloaded);
  return {
    get: (...asked) => again(undefined, () => get(...asked)),
    post: (...asked) => again(asked[2], () => post(...asked)),
    put: (...asked) => again(asked[2], () => put(...asked)),
    del: (...asked) => again(asked[3], () => del(...asked)),
  };
}

export interface RequestOptions {
  readonly token: string;
  readonly body: Sendable | undefined;
  readonly headers: Record<string, string> | undefined;
}

/** Sends one request; an answer with errors has been judged. */
export async function sendRequest(
  url: string,
  method: string,
  path: string,
  { token, body, headers = {} }: RequestOptions,
): Promise<Response> {
  const isRaw = body instanceof Uint8Array || body instanceof ReadableStream;
  const isText = typeof body === 'string' || isRaw || body === undefined;
  const type = isRaw || body === undefined ? {} : { 'Content-Type': 'application/json' };
  const answer = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...type, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: isText ? (body as string) : JSON.stringify(body) }),
  });
  const said = isText ? [] : textsIn(body);
  return checkedResponse(answer, [token, ...path.split(/[/?]/), ...Object.values(headers), ...said]);
}

/** Every text that a value holds, and the names of members that are none of the contract's. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(Array.isArray(value) || NAMES.has(name) ? [] : [name]),
    ...textsIn(inner),
  ]);
}

/** The names that an error may say. */
const NAMES: ReadonlySet<string> = new Set([
  ...['data', 'id', 'type', 'relationships'],
  ...['scopes', 'realms', 'overlap_seconds', 'realm_id', 'user_id'],
  ...RESOURCES.flatMap(({ members, inputs = {} }) => [...Object.keys(members), ...Object.keys(inputs)]),
]);

/** Words of ours that are long, and no secret when they are sent. */
const WORDS =
  /^(?:authentication-realms|user-authentication-[a-z-]+|(?:oidc|password)-profiles|after_realm|application\/[a-z-]+)$/;
/** The values of the contract's own members `type` and the like: an error may name what was wanted. */
const VALUES: ReadonlySet<string> = new Set(RESOURCES.map(({ type }) => type));

interface ErrorEntry {
  readonly status: string;
  readonly title: string;
  readonly detail: string;
  readonly source?: { readonly pointer?: string; readonly parameter?: string };
}

/** The errors of an answer's body. */
export async function errorsOf(answer: Response): Promise<readonly ErrorEntry[]> {
  return ((await answer.clone().json()) as { errors: readonly ErrorEntry[] }).errors;
}

/**
 * Passes every answer on; one with errors first proves its shape, and that it repeats nothing of what was sent. There
 * are several errors only where each says what it is about.
 */
export async function checkedResponse(answer: Response, sent: readonly string[]): Promise<Response> {
  if (answer.status < 400) return answer;
  const body = await answer.clone().text();
  const errors = await errorsOf(answer);
  const isShaped = (error: ErrorEntry) =>
    error.status === String(answer.status) && error.title !== '' && error.detail !== '';
  const isPlaced = ({ source }: ErrorEntry) => (source?.pointer ?? source?.parameter) !== undefined;
  const isWhole = errors.length === 1 || (errors.length > 1 && errors.every(isPlaced));
  if (!isWhole || !errors.every(isShaped)) throw new Error(`no errors of the contract: ${body}`);
  // These two are there to be repeated: each only after it was found to be harmless.
  const own = ['x-request-id', 'access-control-allow-origin'];
  const said = body + JSON.stringify([...answer.headers].filter(([name]) => !own.includes(name)));
  const repeated = sent.find(
    (value) => value.length >= 8 && !WORDS.test(value) && !VALUES.has(value) && said.includes(value),
  );
  if (repeated !== undefined) throw new Error(`repeats ${repeated}: ${said}`);
  return answer;
}

/** Everything two answers can differ in: status, headers but X-Request-Id and Date, and the bytes of the body. */
export async function comparableResponse(answer: Response): Promise<string> {
  const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date').sort();
  return JSON.stringify([answer.status, headers, await answer.text()]);
}

/** A port that was free a moment ago, for a service that must know its address before it starts. */
export async function freePort(): Promise<number> {
  const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  taken.stop(true);
  return taken.port;
}

/** The two lookups: every test of the one is a test of the other. */
export const LOOKUPS = [
  { name: 'OIDC', path: oidcPath, id: 'oidcLink', scope: 'oidc-profile-infos:read' },
  { name: 'password', path: passwordPath, id: 'passwordLink', scope: 'password-profile-infos:read' },
  {
    name: 'password, un-versioned',
    path: (planted: Fixture) => passwordPath(planted).slice('/v2'.length),
    id: 'passwordLink',
    scope: 'password-profile-infos:read',
  },
] as const;

/** One realm with one profile of each kind, one user, and one link of each kind. */
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

/** Plants records through the Store, as any writer would. */
export async function createFixture(db: OpenDatabase, given: Partial<Fixture> = {}): Promise<Fixture> {
  const mint = systemClock.mintId;
  const ids = {
    realm: given.realm ?? mint(),
    user: given.user ?? mint(),
    oidcProfile: given.oidcProfile ?? mint(),
    passwordProfile: given.passwordProfile ?? mint(),
    oidcLink: given.oidcLink ?? mint(),
    passwordLink: given.passwordLink ?? mint(),
    subject: given.subject ?? `auth0|${mint()}`,
    username: given.username ?? `jane-${mint()}`,
  };
  if (!given.realm) await insertRecord(db, realm, [ids.realm], realmMembers);
  if (!given.oidcProfile) {
    await insertRecord(db, oidcProfile, [ids.realm, ids.oidcProfile], {
      name: 'Login',
      discovery_url: `${ISSUER}.well-known/openid-configuration`,
      client_id: 'shop',
      issuer: ISSUER,
    });
  }
  if (!given.passwordProfile) {
    await insertRecord(db, passwordProfile, [ids.realm, ids.passwordProfile], {
      name: 'Passwords',
      username_format: 'any',
      enable_one_time_password_token: false,
    });
  }
  if (!given.user) await insertRecord(db, user, [ids.realm, ids.user], userMembers);
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
/** Of no password anybody has; planted so that a test can look for it where it must not be. */
export const PASSWORD_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$Zm9yYmlkZGVuLXRvLWxlYWstYW55d2hlcmUtb3V0';
export const realmMembers = { name: 'Shop', redirect_uris: [], duplicate_email_policy: 'allowed' };
export const userMembers = {
  name: 'Jane Doe',
  email: 'jane@example.com',
  given_name: 'Jane',
  middle_name: null,
  family_name: 'Doe',
  creation_status: 'COMPLETE',
};

/** A record of these members, stamped now. */
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

/** Inserts one record with its change; throws where the store refuses it. */
export async function insertRecord(
  db: OpenDatabase,
  resource: Resource,
  key: Key,
  members: Record<string, unknown>,
) {
  const record = buildRecord(key, members);
  const origin = { actor: 'test', requestId: undefined, address: undefined, at: record.created_at };
  const change = changeOf(
    resource,
    'created',
    { key, revision: record.revision, members: Object.keys(members) },
    origin,
  );
  const verdict = await db.engine.records.commit([{ op: 'insert', resource, key, record, change }]);
  if (verdict.kind !== 'written') throw new Error(JSON.stringify(verdict));
  return record;
}

/** The paths of the two lookups. */
export function oidcPath({ realm, user, oidcLink }: Fixture): string {
  return `/v2/authentication-realms/${realm}/user-authentication-info/${user}/user-authentication-oidc-profile-info/${oidcLink}`;
}

export function passwordPath({ realm, user, passwordLink }: Fixture): string {
  return `/v2/authentication-realms/${realm}/user-authentication-info/${user}/user-authentication-password-profile-info/${passwordLink}`;
}
