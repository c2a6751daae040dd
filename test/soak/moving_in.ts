import { deepEqual, equal } from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kratos } from '../../bench/peers/kratos.ts';
import { sendJson } from '../../bench/peers/peer.ts';
import { installKratos } from '../../bench/peers/programs.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { findPort } from '../support/daemons.ts';
import { atEnd, endFile } from '../support/ending.ts';
import { freshFolder, RUN_FOLDER } from '../support/folder.ts';
import { GOOGLE } from '../support/foreign_export_parts.ts';
import { targetLines } from '../support/foreign_exports.ts';
import { bytesOf } from '../support/import_fixtures.ts';
import { PASSWORD, startKeycloak } from '../support/keycloak.ts';
import { userAt } from '../support/population.ts';
import { endServers } from '../support/postgres_server.ts';
import { runAuthrealm, runCommand, startCommand } from '../support/processes.ts';
import { startService } from '../support/service.ts';
import { END_USER, signInTokenOf } from '../support/sign_in.ts';

/**
 * Users move in with an export that Keycloak or Kratos itself made: their passwords are checked, their links found, and who was disabled
 * there does not sign in (docs/guides/moving-in.md).
 */

const { values: options } = parseArgs({
  options: {
    source: { type: 'string', multiple: true, default: ['keycloak', 'kratos'] },
    /** Where the programs are installed, for this run and the next ones, as by `npm run bench:peers`. */
    programs: { type: 'string', default: join(tmpdir(), 'authrealm-peers') },
  },
});

const SUBJECT = '110248495921238986420';
const CONVERTERS = join(import.meta.dir, '../../examples/convert');

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

async function exportKratos(folder: string): Promise<MovedUsers> {
  const peer = kratos(await installKratos(options.programs), 'sqlite');
  const context = { folder: join(folder, 'kratos'), port: findPort(), database: join(folder, 'kratos.db') };
  mkdirSync(context.folder);
  const { command, environment } = await peer.prepare({ ...context, users: 0, userOf: userAt });
  const running = startCommand(command, environment);
  atEnd(() => running.stop());
  const admin = `http://127.0.0.1:${context.port}/admin`;
  while (!(await fetch(`${admin}/health/ready`).catch(() => undefined))?.ok) await Bun.sleep(50);
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

const SOURCES = {
  keycloak: { provider: 'google', write: exportKeycloak },
  kratos: { provider: 'login', write: exportKratos },
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

try {
  for (const source of options.source) {
    if (!(source in SOURCES)) throw new Error(`--source must be one of ${Object.keys(SOURCES).join(', ')}`);
    console.log(`${source}: ${await moveIn(source as keyof typeof SOURCES)}`);
  }
} finally {
  await endFile();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
  await endServers();
}
console.log(`moved in from ${options.source.join(' and ')}`);
