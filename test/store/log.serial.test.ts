import { beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '../../src/auth/clients/clients.ts';
import { parseScopes } from '../../src/domain/principal.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import {
  freshFolder,
  ISSUER,
  oidcPath,
  PASSWORD_HASH,
  type Planted,
  passwordPath,
  plant,
} from '../support/service.ts';

/** A busy run of the real command, every kind of success and failure in it; then its whole output is read. */

const AUTHREALM = fileURLToPath(new URL('../../bin/authrealm', import.meta.url));
const folder = freshFolder();
const database = await freshDatabase();
const out = join(folder, 'out');
const err = join(folder, 'err');

let planted: Planted;
let lines: Record<string, unknown>[];
let exitCode: number;
/** Everything that was sent or stored and must be in no output, by name. */
const secrets: Record<string, string> = {};

beforeAll(async () => {
  const db = await openDatabase(database.settings(), systemClock);
  planted = await plant(db, { subject: 'subject-of-jane', username: 'username-of-jane' });
  const client = async (scope: string) => {
    const scopes = parseScopes(scope) ?? new Set();
    return createClient(db.engine.access, 'log', { scopes, realms: '*' }, systemClock);
  };
  const [reader, writer] = [
    await client('profile-infos:read'),
    await client('users:read users:write profile-infos:write profiles:write'),
  ];
  await db.engine.close();
  const command = [
    AUTHREALM,
    'serve',
    ...database.words,
    '--port',
    '0',
    '--log-requests',
    'full',
    '--offline',
  ];
  const server = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', Bun.file(out), Bun.file(err)],
  });
  process.on('exit', () => server.kill('SIGKILL'));
  await busyRun(await address(), reader, writer);
  server.kill('SIGTERM');
  exitCode = await server.exited;
  lines = readFileSync(err, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}, 300_000);

async function address(): Promise<string> {
  for (let tries = 0; tries < 500; tries += 1) {
    const url = /listening on (\S+)/.exec(readFileSync(out, 'utf8'))?.[1];
    if (url) return url;
    await Bun.sleep(20);
  }
  throw new Error(`did not start: ${readFileSync(out, 'utf8')}${readFileSync(err, 'utf8')}`);
}

type Issued = Awaited<ReturnType<typeof createClient>>;

async function busyRun(url: string, reader: Issued, writer: Issued): Promise<void> {
  const grant = async ({ client, secret }: Issued, more: Record<string, string> = {}) => {
    const form = {
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
      ...more,
    };
    return fetch(`${url}/oauth/access_token`, { method: 'POST', body: new URLSearchParams(form) });
  };
  const tokenOf = async (issued: Issued) =>
    ((await (await grant(issued)).json()) as { access_token: string }).access_token;
  const [token, other] = [await tokenOf(reader), await tokenOf(writer)];
  Object.assign(secrets, { token, other, reader: reader.secret, writer: writer.secret, issuer: ISSUER });
  Object.assign(secrets, { hash: PASSWORD_HASH, subject: planted.subject, username: planted.username });
  const { realm, user, oidcLink, passwordLink } = planted;
  Object.assign(secrets, { realm, user, oidcLink, passwordLink });
  const basic = Buffer.from(`${reader.client.clientId}:${reader.secret}`).toString('base64');
  Object.assign(secrets, { basic });

  const get = (target: string, bearer?: string, init: RequestInit = {}) =>
    fetch(url + target, {
      ...init,
      headers: { ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}), ...init.headers },
    });
  const { username, subject } = planted;
  const post = (body: string | Uint8Array<ArrayBuffer>) =>
    fetch(`${url}/oauth/token`, { method: 'POST', body });
  const runs: [number, () => Promise<Response>][] = [
    [200, () => get(oidcPath(planted), token)],
    [200, () => get(`/${passwordPath(planted)}/`, token)],
    [200, () => get(passwordPath(planted).slice(3), token, { method: 'HEAD' })],
    [304, () => get(oidcPath(planted), token, { headers: { 'If-None-Match': '*' } })],
    [401, () => get(`${oidcPath(planted)}?access_token=${token}`)],
    [401, () => get(passwordPath(planted), `${token.slice(0, -1)}!`)],
    [403, () => get(oidcPath(planted), other)],
    [404, () => get(oidcPath({ ...planted, realm: user }), token)],
    [404, () => get(oidcPath({ ...planted, oidcLink: username as never }), token)],
    [404, () => get(`/v2/${username}/${subject}?${token}`, token)],
    [403, () => get(oidcPath(planted), token, { method: 'DELETE' })],
    [405, () => get(oidcPath(planted), token, { method: 'PATCH' })],
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
  const slow = slowly(url, reader.secret);
  for (const [status, run] of runs) expect((await run()).status).toBe(status);
  await database.ask('alter table oidc_profile_info rename to subject_of_jane_elsewhere');
  expect((await get(oidcPath(planted), token)).status).toBe(503);
  expect(await slow).toStartWith('HTTP/1.1 408 ');
}

/** What is said in writes and searches: none of it may be seen. */
const SAID = {
  password: 'password-of-jane-that-is-long',
  wrongPassword: 'words-of-jane-with-\u0000-in-them',
  email: 'address-of-jane@example.com',
  name: 'Jane-of-the-long-name',
  newSubject: 'another-subject-of-jane',
  newUsername: 'another-username-of-jane',
  clientSecret: 'client-secret-of-the-shop',
  discovery: 'https://provider-of-jane.example/.well-known/openid-configuration',
  idempotencyKey: 'key-of-janes-own-request',
};

function writes(url: string, token: string): [number, () => Promise<Response>][] {
  Object.assign(secrets, SAID);
  const realm = `/v2/authentication-realms/${planted.realm}`;
  const users = `${realm}/user-authentication-info`;
  const links = `${users}/${planted.user}/user-authentication`;
  const send = (method: string, path: string, data?: object) =>
    fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Idempotency-Key': SAID.idempotencyKey },
      ...(data ? { body: JSON.stringify({ data }) } : {}),
    });
  const user = { type: 'user_authentication_info', name: SAID.name, email: SAID.email };
  const identity = {
    type: 'user_authentication_oidc_profile_info',
    subject: SAID.newSubject,
    issuer: ISSUER,
    oidc_profile_id: planted.oidcProfile,
  };
  const username = {
    type: 'user_authentication_password_profile_info',
    username: SAID.newUsername,
    password: SAID.password,
    password_profile_id: planted.passwordProfile,
  };
  const profile = {
    type: 'oidc-profile',
    name: SAID.name,
    client_id: 'shop',
    client_secret: SAID.clientSecret,
    discovery_url: SAID.discovery,
  };
  const filter = encodeURIComponent(`eq(email,${SAID.email}):like(name,${SAID.name}*)`);
  return [
    [201, () => send('POST', users, user)],
    [201, () => send('POST', users, user)],
    [422, () => send('POST', users, { ...user, name: SAID.newSubject })],
    [400, () => send('PUT', `${users}/${planted.user}/`, { ...user, type: SAID.name })],
    [201, () => send('POST', `${links}-oidc-profile-info`, identity)],
    [201, () => send('POST', `${links}-password-profile-info`, username)],
    [201, () => send('POST', `/${realm}/oidc-profiles`, profile)],
    [422, () => send('POST', `${realm}/oidc-profiles`, { ...profile, client_secret: SAID.wrongPassword })],
    [400, () => send('PUT', passwordPath(planted), { ...username, username: SAID.wrongPassword })],
    [200, () => send('PUT', passwordPath(planted), { ...username, username: SAID.name })],
    [412, () => conditional(url + oidcPath(planted), token)],
    [200, () => send('GET', `${users}?filter=${filter}`)],
    [400, () => send('GET', `${users}?filter=${filter}(${SAID.newSubject}`)],
  ];
}

function conditional(address: string, token: string): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}`, 'If-Match': `"${SAID.newSubject}"` };
  return fetch(address, { method: 'DELETE', headers });
}

function basicGrant(credentials: string): RequestInit {
  const headers = { Authorization: `Basic ${credentials}` };
  return { method: 'POST', headers, body: new URLSearchParams({ grant_type: 'client_credentials' }) };
}

/** A body that holds a secret and never ends. */
function slowly(url: string, secret: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
    socket.write(
      `POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\nclient_secret=${secret}`,
    );
  });
  socket.on('data', (part) => {
    resolve(part.toString());
    socket.destroy();
  });
  return promise;
}

test('every line of standard error is JSON with an event', () => {
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) expect(line.event).toBeString();
});

test('every request has its line, with the pattern of its route and never the path', () => {
  const requests = lines.filter(({ event }) => event === 'request');
  const statuses = new Set(requests.map(({ status }) => status));
  expect([...statuses].sort()).toEqual([200, 201, 304, 400, 401, 403, 404, 405, 408, 412, 413, 422, 503]);
  for (const { route } of requests) expect(route).toMatch(/^(\*|(\/:?[a-z0-9_.-]+)+)$/);
  expect(requests.some(({ route }) => route === '*')).toBe(true);
});

test('a failure of the engine is logged by its code, without its words', () => {
  const faults = lines.filter(({ event }) => event === 'fault');
  expect(faults.map(({ code }) => code)).toEqual(['unavailable']);
  expect(faults[0]?.cause).toMatch(/^(SQLITE_[A-Z]+|[0-9A-Z]{5})$/);
  for (const words of ['no such table', 'does not exist'])
    expect(JSON.stringify(faults)).not.toContain(words);
  expect(JSON.stringify(faults)).not.toContain('subject_of_jane');
});

test('it drained: stopping, stopped, exit code 0', () => {
  expect(exitCode).toBe(0);
  // Where checkpoints go to the log, the last one is written in between.
  const own = lines.filter(({ event }) => event !== 'checkpoint');
  expect(own.slice(-2).map(({ event }) => event)).toEqual(['stopping', 'stopped']);
});

test('no token, subject, username, secret, hash, ID or path of a record is in the whole output', () => {
  const whole = readFileSync(out, 'utf8') + readFileSync(err, 'utf8');
  // A checkpoint says which realm's log it is of: that is what it is for.
  const own = whole.replaceAll(/^.*"event":"checkpoint".*$/gm, '');
  expect(Object.keys(secrets).length).toBe(13 + Object.keys(SAID).length);
  for (const [name, value] of Object.entries(secrets)) {
    expect(value.length).toBeGreaterThan(8);
    for (const form of [value, encodeURIComponent(value), value.slice(0, 40), value.slice(-20)]) {
      expect([name, (name === 'realm' ? own : whole).includes(form)]).toEqual([name, false]);
    }
  }
});
