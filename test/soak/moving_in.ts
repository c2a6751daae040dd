import { Database } from 'bun:sqlite';
import { deepEqual, equal } from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kratos } from '../../bench/peers/kratos.ts';
import { type Peer, sendJson } from '../../bench/peers/peer.ts';
import { installBetterAuth, installKratos } from '../../bench/peers/programs.ts';
import { supabaseAuth } from '../../bench/peers/supabase_auth.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { findPort } from '../support/daemons.ts';
import { atEnd, endFile } from '../support/ending.ts';
import { freshFolder, RUN_FOLDER } from '../support/folder.ts';
import { GOOGLE } from '../support/foreign_export_parts.ts';
import { targetLines } from '../support/foreign_exports.ts';
import { bytesOf } from '../support/import_fixtures.ts';
import { PASSWORD, startKeycloak } from '../support/keycloak.ts';
import { userAt } from '../support/population.ts';
import { endServers, runOn, sharedServer } from '../support/postgres_server.ts';
import { runAuthrealm, runCommand, startCommand } from '../support/processes.ts';
import { startService } from '../support/service.ts';
import { END_USER, signInTokenOf } from '../support/sign_in.ts';

/**
 * Users move in with an export that Keycloak, Kratos, Supabase Auth or better-auth itself made: their passwords are checked, their links
 * found, and who was disabled there does not sign in (docs/guides/moving-in.md).
 */

const { values: options } = parseArgs({
  options: {
    source: { type: 'string', multiple: true, default: ['keycloak', 'kratos', 'supabase', 'better_auth'] },
    /** Where the programs are installed, for this run and the next ones, as by `npm run bench:peers`. */
    programs: { type: 'string', default: join(tmpdir(), 'authrealm-peers') },
    /** The program of Supabase Auth. */
    'supabase-auth': { type: 'string' },
  },
});

const SUBJECT = '110248495921238986420';
const CONVERTERS = join(import.meta.dir, '../../examples/convert');
const GUIDE = readFileSync(join(import.meta.dir, '../../docs/guides/moving-in.md'), 'utf8');

interface MovedUsers {
  readonly files: readonly string[];
  /** The usernames of users who may sign in, all with `PASSWORD`. */
  readonly usernames: readonly string[];
  readonly disabled: string;
}

async function exportKeycloak(folder: string): Promise<MovedUsers> {
  const keycloak = await startKeycloak(options.programs);
  const add = (username: string, more: object = {}) =>
    keycloak.administrate('/users', {
      ...{ username, email: `${username}@example.com`, enabled: true, ...more },
      credentials: [{ type: 'password', value: PASSWORD }],
    });
  const config = { clientId: 'shop', clientSecret: 'of the provider', issuer: GOOGLE };
  const endpoints = { authorizationUrl: `${GOOGLE}/o/oauth2/v2/auth`, tokenUrl: `${GOOGLE}/token` };
  await keycloak.administrate('/identity-provider/instances', {
    ...{ alias: 'google', providerId: 'oidc', config: { ...config, ...endpoints } },
  });
  await add('linked', {
    federatedIdentities: [{ identityProvider: 'google', userId: SUBJECT, userName: 'linked' }],
  });
  await add('disabled', { enabled: false });
  // The default is argon2.
  for (const digest of ['pbkdf2-sha512', 'pbkdf2-sha256', 'pbkdf2']) {
    await keycloak.administrate('', { passwordPolicy: `hashAlgorithm(${digest})` }, 'PUT');
    await add(digest);
  }
  await keycloak.exportRealm(folder);
  const files = [...new Bun.Glob('*-users-*.json').scanSync({ cwd: folder, absolute: true })].sort();
  const usernames = ['anna', 'linked', 'pbkdf2-sha512', 'pbkdf2-sha256', 'pbkdf2'];
  return { files, usernames, disabled: 'disabled' };
}

/** Starts a peer on an empty database, and waits until a path of it is answered. */
async function startPeer(peer: Peer, folder: string, database: string, path: string) {
  const context = { folder: join(folder, 'peer'), port: findPort(), database, users: 0, userOf: userAt };
  mkdirSync(context.folder);
  const { command, environment } = await peer.prepare(context);
  const running = startCommand(command, environment);
  atEnd(() => running.stop());
  const url = `http://127.0.0.1:${context.port}`;
  while (!(await fetch(`${url}${path}`).catch(() => undefined))?.ok) await Bun.sleep(50);
  return { url, context };
}

async function exportKratos(folder: string): Promise<MovedUsers> {
  const peer = kratos(await installKratos(options.programs), 'sqlite');
  const { url } = await startPeer(peer, folder, join(folder, 'kratos.db'), '/admin/health/ready');
  const admin = `${url}/admin`;
  const add = (email: string, state: string, credentials: object = {}) =>
    sendJson(`${admin}/identities`, {
      ...{ schema_id: 'person', traits: { email, name: 'Jane Doe' }, state },
      credentials: { password: { config: { password: PASSWORD } }, ...credentials },
    });
  // Kratos knows its provider as `login`.
  const oidc = { config: { providers: [{ provider: 'login', subject: SUBJECT }] } };
  await add('linked@example.com', 'active', { oidc });
  await add('disabled@example.com', 'inactive');
  const pages = await fetch(`${admin}/identities?include_credential=password&include_credential=oidc`);
  const file = join(folder, 'identities.json');
  writeFileSync(file, await pages.text());
  return { files: [file], usernames: ['linked@example.com'], disabled: 'disabled@example.com' };
}

/** The query of the guide that begins so, for the rows of an export. */
function queryOf(beginning: string): string {
  const from = GUIDE.indexOf(`"${beginning}`) + 1;
  return GUIDE.slice(from, GUIDE.indexOf('"', from));
}

async function exportSupabase(folder: string): Promise<MovedUsers> {
  const peer = supabaseAuth(options['supabase-auth'] ?? '');
  const database = await (await sharedServer()).freshDatabase();
  const { url, context } = await startPeer(peer, folder, database, '/health');
  const { token } = await peer.workload(context);
  const headers = { Authorization: `Bearer ${token}` };
  const add = async (email: string): Promise<string> => {
    const user = { email, password: PASSWORD, email_confirm: true };
    const answer = await sendJson(`${url}/admin/users`, user, { headers });
    return ((await answer.json()) as { id: string }).id;
  };
  const linked = await add('linked@example.com');
  const disabled = await add('disabled@example.com');
  await sendJson(`${url}/admin/users/${disabled}`, { ban_duration: '24h' }, { method: 'PUT', headers });
  // No route creates a link; this is the row that a sign-in through the provider leaves.
  await runOn(
    database,
    `insert into auth.identities (provider_id, user_id, provider, identity_data, created_at, updated_at)
     values ('${SUBJECT}', '${linked}', 'google', '{"sub": "${SUBJECT}", "iss": "${GOOGLE}"}', now(), now())`,
  );
  const rows = await runOn<{ row_to_json: object }>(database, queryOf('select row_to_json'));
  const file = join(folder, 'rows.ndjson');
  writeFileSync(file, bytesOf(rows.map(({ row_to_json }) => ({ ...row_to_json }))));
  return { files: [file], usernames: ['linked@example.com'], disabled: 'disabled@example.com' };
}

async function exportBetterAuth(folder: string): Promise<MovedUsers> {
  const programs = await installBetterAuth(options.programs);
  const load = (name: string) => import(Bun.resolveSync(`better-auth${name}`, programs));
  const [{ betterAuth }, { admin }] = [await load(''), await load('/plugins')];
  const database = new Database(join(folder, 'better-auth.db'), { create: true });
  atEnd(() => database.close());
  const settings = {
    ...{ database, baseURL: 'http://127.0.0.1', secret: crypto.randomUUID(), plugins: [admin()] },
    ...{ emailAndPassword: { enabled: true }, telemetry: { enabled: false } },
  };
  await (await (await load('/db/migration')).getMigrations(settings)).runMigrations();
  const { api, $context } = betterAuth(settings);
  const { internalAdapter } = await $context;
  const add = async (email: string): Promise<string> => {
    const { user } = await api.signUpEmail({ body: { email, name: 'Jane Doe', password: PASSWORD } });
    return user.id;
  };
  const [administrator, linked] = [await add('admin@example.com'), await add('linked@example.com')];
  await internalAdapter.linkAccount({ userId: linked, providerId: 'google', accountId: SUBJECT });
  await internalAdapter.updateUser(administrator, { role: 'admin' });
  const body = { email: 'admin@example.com', password: PASSWORD };
  const signedIn = await api.signInEmail({ body, returnHeaders: true });
  const cookies = signedIn.headers.getSetCookie().map((cookie: string) => cookie.split(';')[0]);
  await api.banUser({
    body: { userId: await add('disabled@example.com') },
    headers: new Headers({ Cookie: cookies.join('; ') }),
  });
  const file = join(folder, 'rows.ndjson');
  const rows = database.query(queryOf('select json_object')).values();
  writeFileSync(file, rows.map(([row]) => `${row}\n`).join(''));
  const usernames = ['admin@example.com', 'linked@example.com'];
  return { files: [file], usernames, disabled: 'disabled@example.com' };
}

const SOURCES = {
  keycloak: { provider: 'google', write: exportKeycloak },
  kratos: { provider: 'login', write: exportKratos },
  supabase: { provider: 'google', write: exportSupabase },
  better_auth: { provider: 'google', write: exportBetterAuth },
};

/** Converts and imports an export, and signs its users in. Returns what the converter printed. */
async function moveIn(source: keyof typeof SOURCES): Promise<string> {
  const folder = freshFolder();
  const { provider, write } = SOURCES[source];
  const { files, usernames, disabled } = await write(folder);
  const service = await startService();
  const realm = systemClock.mintId();
  const lines = targetLines(realm);
  const [target, users] = [join(folder, 'realm.ndjson'), join(folder, 'users.ndjson')];
  writeFileSync(target, bytesOf(lines));
  const words = ['--into', target, '--issuer', `${provider}=${GOOGLE}`, ...files];
  const converted = await runCommand([process.execPath, join(CONVERTERS, `${source}.ts`), ...words]);
  equal(converted.code, 0, converted.stderr);
  writeFileSync(users, converted.stdout);
  for (const file of [target, users]) {
    const { code, stdout, stderr } = await runAuthrealm(['import', file, ...service.database.args]);
    equal(code, 0, stdout + stderr);
  }

  const token = await signInTokenOf(service);
  const path = `/v2/authentication-realms/${realm}/password-profiles/${lines[1]?.id}/check`;
  const isVerified = async (username: string, password: string) => {
    const data = { type: 'password_check', username, password };
    const answer = await service.post(path, token, { data }, END_USER);
    return ((await answer.json()) as { data: { verified: boolean } }).data.verified;
  };
  for (const username of usernames) {
    deepEqual([username, await isVerified(username, `${PASSWORD}?`)], [username, false]);
    deepEqual([username, await isVerified(username, PASSWORD)], [username, true]);
  }
  equal(await isVerified(disabled, PASSWORD), false);
  const links = await service.database.query<{ subject: string }>('select subject from oidc_profile_info');
  deepEqual(
    links.map(({ subject }) => subject),
    [SUBJECT],
  );
  return converted.stderr.trim().replaceAll('\n', '; ');
}

/** Supabase Auth is no Go module that can be installed by its name. */
const isLeftOut = (source: string) => source === 'supabase' && options['supabase-auth'] === undefined;
const sources = options.source.filter((source) => !isLeftOut(source));
try {
  for (const source of sources) {
    if (!(source in SOURCES)) throw new Error(`--source must be one of ${Object.keys(SOURCES).join(', ')}`);
    console.log(`${source}: ${await moveIn(source as keyof typeof SOURCES)}`);
  }
} finally {
  await endFile();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
  await endServers();
}
const leftOut = options.source.some(isLeftOut) ? '; supabase left out: pass --supabase-auth FILE' : '';
console.log(`moved in from ${sources.join(', ') || 'nowhere'}${leftOut}`);
process.exitCode = sources.length === 0 ? 1 : 0;
