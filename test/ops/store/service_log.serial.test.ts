import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Subprocess } from 'bun';
import { createClient } from '../../../src/access/clients/clients.ts';
import { openDatabase } from '../../../src/app/open_database.ts';
import { parseScopes } from '../../../src/model/principal.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { freshDatabase } from '../../support/database.ts';
import { exchangeBytes } from '../../support/raw_http.ts';
import { isOverloaded, sendWithRetry } from '../../support/retry.ts';
import {
  createFixture,
  freshFolder,
  ISSUER,
  oidcPath,
  PASSWORD_HASH,
  passwordPath,
} from '../../support/service.ts';

/** A run of the real command with every kind of success and failure; the tests read its whole output. */

const AUTHREALM = fileURLToPath(new URL('../../../bin/authrealm', import.meta.url));
const folder = freshFolder();
const database = await freshDatabase();
const out = join(folder, 'out');
const err = join(folder, 'err');
/** Every sent or stored value that must not be in the output, by name. */
const secrets: Record<string, string> = {};
/** Values of writes and searches, which must not be in the output. */
const WRITTEN = {
  password: 'password-of-jane-that-is-long',
  wrongPassword: 'password-of-jane-with-\u0000-in-it',
  email: 'address-of-jane@example.com',
  name: 'Jane-of-the-long-name',
  newSubject: 'another-subject-of-jane',
  newUsername: 'another-username-of-jane',
  clientSecret: 'client-secret-of-the-shop',
  discovery: 'https://provider-of-jane.example/.well-known/openid-configuration',
  idempotencyKey: 'key-of-janes-own-request',
};

const db = await openDatabase(database.settings(), systemClock);
const created = await createFixture(db, { subject: 'subject-of-jane', username: 'username-of-jane' });
const client = async (scope: string) => {
  const scopes = parseScopes(scope) ?? new Set();
  return createClient(db.engine.access, 'log', { scopes, realms: '*' }, systemClock);
};
const [reader, writer] = [
  await client('profile-infos:read'),
  await client('users:read users:write profile-infos:write profiles:write'),
];
await db.engine.close();
const command = [AUTHREALM, 'serve', ...database.args, '--port', '0', '--log-requests', 'full', '--offline'];
const server = Bun.spawn(command, {
  env: { PATH: process.env.PATH ?? '' },
  stdio: ['ignore', Bun.file(out), Bun.file(err)],
});
process.on('exit', () => server.kill('SIGKILL'));
await sendRequests(await address(server), reader, writer);
server.kill('SIGTERM');
const exitCode = await server.exited;
const lines = readFileSync(err, 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line));

async function address(server: Pick<Subprocess, 'exitCode'>): Promise<string> {
  while (server.exitCode === null) {
    const url = /listening on (\S+)/.exec(readFileSync(out, 'utf8'))?.[1];
    if (url) return url;
    await Bun.sleep(20);
  }
  throw new Error(`did not start: ${readFileSync(out, 'utf8')}${readFileSync(err, 'utf8')}`);
}

type IssuedClient = Awaited<ReturnType<typeof createClient>>;

async function sendRequests(url: string, reader: IssuedClient, writer: IssuedClient): Promise<void> {
  const grant = async ({ client, secret }: IssuedClient, more: Record<string, string> = {}) => {
    const form = {
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
      ...more,
    };
    return fetch(`${url}/oauth/access_token`, { method: 'POST', body: new URLSearchParams(form) });
  };
  const tokenOf = async (issued: IssuedClient) =>
    ((await (await grant(issued)).json()) as { access_token: string }).access_token;
  const [token, other] = [await tokenOf(reader), await tokenOf(writer)];
  Object.assign(secrets, { token, other, reader: reader.secret, writer: writer.secret, issuer: ISSUER });
  Object.assign(secrets, { hash: PASSWORD_HASH, subject: created.subject, username: created.username });
  const { realm, user, oidcLink, passwordLink } = created;
  Object.assign(secrets, { realm, user, oidcLink, passwordLink });
  const basic = Buffer.from(`${reader.client.clientId}:${reader.secret}`).toString('base64');
  Object.assign(secrets, { basic });

  const get = (target: string, bearer?: string, init: RequestInit = {}) =>
    fetch(url + target, {
      ...init,
      headers: { ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}), ...init.headers },
    });
  const { username, subject } = created;
  const post = (body: string | Uint8Array<ArrayBuffer>) =>
    fetch(`${url}/oauth/token`, { method: 'POST', body });
  const requests: [number, () => Promise<Response>][] = [
    [200, () => get(oidcPath(created), token)],
    [200, () => get(`/${passwordPath(created)}/`, token)],
    [200, () => get(passwordPath(created).slice(3), token, { method: 'HEAD' })],
    [304, () => get(oidcPath(created), token, { headers: { 'If-None-Match': '*' } })],
    [401, () => get(`${oidcPath(created)}?access_token=${token}`)],
    [401, () => get(passwordPath(created), `${token.slice(0, -1)}!`)],
    [403, () => get(oidcPath(created), other)],
    [404, () => get(oidcPath({ ...created, realm: user }), token)],
    [404, () => get(oidcPath({ ...created, oidcLink: username as never }), token)],
    [404, () => get(`/v2/${username}/${subject}?${token}`, token)],
    [403, () => get(oidcPath(created), token, { method: 'DELETE' })],
    [405, () => get(oidcPath(created), token, { method: 'PATCH' })],
    [400, () => post(`client_secret=${reader.secret}&username=${username}`)],
    [400, () => fetch(`${url}/oauth/token?client_secret=${reader.secret}`, { method: 'POST' })],
    [400, () => post(Buffer.concat([Buffer.from(reader.secret), Buffer.of(0xff)]))],
    ...writes(url, other),
    [400, () => grant(reader, { scope: 'users:write' })],
    [401, () => grant(reader, { client_secret: writer.secret })],
    [401, () => grant({ ...reader, client: { ...reader.client, clientId: username } })],
    [401, () => fetch(`${url}/oauth/token`, basicGrant(`${basic}xx`))],
    [200, () => fetch(`${url}/oauth/token`, basicGrant(basic))],
    [413, () => post(reader.secret.repeat(5_000))],
    [200, () => get('/openapi.json')],
    [200, () => get('/readyz')],
  ];
  const unfinished = `POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\nclient_secret=${reader.secret}`;
  const slow = exchangeBytes(url, unfinished, { timeoutMs: 30_000 });
  for (const [status, run] of requests) expect((await sendWithRetry(run, isOverloaded)).status).toBe(status);
  await database.query('alter table oidc_profile_info rename to subject_of_jane_elsewhere');
  expect((await get(oidcPath(created), token)).status).toBe(503);
  expect((await slow).responses.map(({ status }) => status)).toEqual([408]);
}

function writes(url: string, token: string): [number, () => Promise<Response>][] {
  Object.assign(secrets, WRITTEN);
  const realm = `/v2/authentication-realms/${created.realm}`;
  const users = `${realm}/user-authentication-info`;
  const links = `${users}/${created.user}/user-authentication`;
  const send = (method: string, path: string, data?: object) =>
    fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Idempotency-Key': WRITTEN.idempotencyKey },
      ...(data ? { body: JSON.stringify({ data }) } : {}),
    });
  const user = { type: 'user_authentication_info', name: WRITTEN.name, email: WRITTEN.email };
  const identity = {
    type: 'user_authentication_oidc_profile_info',
    subject: WRITTEN.newSubject,
    issuer: ISSUER,
    oidc_profile_id: created.oidcProfile,
  };
  const username = {
    type: 'user_authentication_password_profile_info',
    username: WRITTEN.newUsername,
    password: WRITTEN.password,
    password_profile_id: created.passwordProfile,
  };
  const profile = {
    type: 'oidc-profile',
    name: WRITTEN.name,
    client_id: 'shop',
    client_secret: WRITTEN.clientSecret,
    discovery_url: WRITTEN.discovery,
  };
  const filter = encodeURIComponent(`eq(email,${WRITTEN.email}):like(name,${WRITTEN.name}*)`);
  return [
    [201, () => send('POST', users, user)],
    [201, () => send('POST', users, user)],
    [422, () => send('POST', users, { ...user, name: WRITTEN.newSubject })],
    [400, () => send('PUT', `${users}/${created.user}/`, { ...user, type: WRITTEN.name })],
    [201, () => send('POST', `${links}-oidc-profile-info`, identity)],
    [201, () => send('POST', `${links}-password-profile-info`, username)],
    [201, () => send('POST', `/${realm}/oidc-profiles`, profile)],
    [422, () => send('POST', `${realm}/oidc-profiles`, { ...profile, client_secret: WRITTEN.wrongPassword })],
    [400, () => send('PUT', passwordPath(created), { ...username, username: WRITTEN.wrongPassword })],
    [200, () => send('PUT', passwordPath(created), { ...username, username: WRITTEN.name })],
    [412, () => conditional(url + oidcPath(created), token)],
    [200, () => send('GET', `${users}?filter=${filter}`)],
    [400, () => send('GET', `${users}?filter=${filter}(${WRITTEN.newSubject}`)],
  ];
}

function conditional(address: string, token: string): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}`, 'If-Match': `"${WRITTEN.newSubject}"` };
  return fetch(address, { method: 'DELETE', headers });
}

function basicGrant(credentials: string): RequestInit {
  const headers = { Authorization: `Basic ${credentials}` };
  return { method: 'POST', headers, body: new URLSearchParams({ grant_type: 'client_credentials' }) };
}

test('every line of standard error is JSON with an event', () => {
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) expect(line.event).toBeString();
});

test('every request is logged with the pattern of its route and never its path', () => {
  const requests = lines.filter(({ event }) => event === 'request');
  const statuses = new Set(requests.map(({ status }) => status));
  expect([...statuses].sort()).toEqual([200, 201, 304, 400, 401, 403, 404, 405, 408, 412, 413, 422, 503]);
  for (const { route } of requests) expect(route).toMatch(/^(\*|(\/:?[a-z0-9_.-]+)+)$/);
  expect(requests.some(({ route }) => route === '*')).toBe(true);
});

test('an engine error is logged by its code, without its message', () => {
  const faults = lines.filter(({ event }) => event === 'fault');
  expect(faults.map(({ code }) => code)).toEqual(['unavailable']);
  expect(faults[0]?.cause).toMatch(/^(SQLITE_[A-Z]+|[0-9A-Z]{5})$/);
  for (const message of ['no such table', 'does not exist'])
    expect(JSON.stringify(faults)).not.toContain(message);
  expect(JSON.stringify(faults)).not.toContain('subject_of_jane');
});

test('a service that drains logs stopping and stopped, and exits with code 0', () => {
  expect(exitCode).toBe(0);
  expect(lines.slice(-2).map(({ event }) => event)).toEqual(['stopping', 'stopped']);
});

test('no token, subject, username, secret, hash, ID or path of a record is in the output', () => {
  const output = readFileSync(out, 'utf8') + readFileSync(err, 'utf8');
  expect(Object.keys(secrets).length).toBe(13 + Object.keys(WRITTEN).length);
  for (const [name, value] of Object.entries(secrets)) {
    expect(value.length).toBeGreaterThan(8);
    for (const form of [value, encodeURIComponent(value), value.slice(0, 40), value.slice(-20)]) {
      expect([name, output.includes(form)]).toEqual([name, false]);
    }
  }
});
