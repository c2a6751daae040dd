import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../src/platform/version.ts';

/**
 * Stores a database that this release wrote, and the release's code, as fixtures for the tests of later releases: run
 * `bun scripts/write_release_fixture.ts` once, when a release is tagged. `--code TAG` stores only the code, of an earlier release. These
 * fixtures never change.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const AUTHREALM = join(ROOT, 'bin', 'authrealm');
const RELEASES = join(ROOT, 'test', 'fixtures', 'releases');
const RELEASE = join(RELEASES, VERSION);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-release-'));
const path = join(folder, 'authrealm.db');
const DATABASE = ['--database', `sqlite:${path}`];
const SCOPES =
  'realms:read realms:write profiles:read profiles:write users:read users:write profile-infos:read';

async function run(...args: readonly string[]): Promise<string> {
  const child = Bun.spawn([AUTHREALM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`authrealm ${args[0]} failed`);
  return output;
}

/** Starts the service; returns its URL and a function that stops it. */
async function serve(): Promise<{ url: string; stop(): Promise<unknown> }> {
  const child = Bun.spawn([AUTHREALM, 'serve', '--port', '0', '--offline', ...DATABASE], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for await (const chunk of child.stdout) {
    const url = /listening on (\S+)/.exec(new TextDecoder().decode(chunk))?.[1];
    if (url === undefined) continue;
    const stop = () => {
      child.kill('SIGTERM');
      return child.exited;
    };
    return { url, stop };
  }
  throw new Error('the service did not start');
}

interface ClientCredentials {
  readonly client_id: string;
  readonly client_secret: string;
}

/** Creates records of every resource with all members over HTTP, repeats one request with its idempotency key, deletes a user. */
async function createRecords(url: string, { client_id, client_secret }: ClientCredentials): Promise<void> {
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
  const tokenResponse = await fetch(`${url}/oauth/access_token`, { method: 'POST', body: form });
  const { access_token } = (await tokenResponse.json()) as { access_token: string };
  const send = async (method: string, at: string, data?: object, key?: string): Promise<string> => {
    const headers = { Authorization: `Bearer ${access_token}`, ...(key ? { 'Idempotency-Key': key } : {}) };
    const init = data ? { body: JSON.stringify({ data }) } : {};
    const response = await fetch(`${url}${at}`, { method, headers, ...init });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${at}: ${response.status} ${text}`);
    return text === '' ? '' : ((JSON.parse(text) as { data: { id: string } }).data.id ?? '');
  };
  const realms = '/v2/authentication-realms';
  const uris = ['https://shop.example/callback', 'http://localhost:8080/callback'];
  const type = 'authentication-realm';
  const realm = await send('POST', realms, { type, name: 'Shop', redirect_uris: uris }, 'realm-1');
  await send('POST', realms, { type, name: 'Shop', redirect_uris: uris }, 'realm-1');
  const oidc = await send('POST', `${realms}/${realm}/oidc-profiles`, {
    type: 'oidc-profile',
    name: 'Login',
    discovery_url: 'https://login.example.com/.well-known/openid-configuration',
    client_id: 'shop',
    client_secret: 'a-secret-that-is-sealed',
  });
  const passwords = await send('POST', `${realms}/${realm}/password-profiles`, {
    type: 'password_profile',
    name: 'Passwords',
    username_format: 'email',
  });
  const users = `${realms}/${realm}/user-authentication-info`;
  const userBody = { type: 'user_authentication_info', name: 'Jane Doe', email: 'Jane@Example.com' };
  const jane = await send('POST', users, { ...userBody, given_name: 'Jane', family_name: 'Doe' }, 'user-1');
  const link = { type: 'user_authentication_oidc_profile_info', oidc_profile_id: oidc };
  const issuer = 'https://login.example.com';
  const first = `${users}/${jane}/user-authentication-oidc-profile-info`;
  const id = await send('POST', first, { ...link, issuer, subject: 'auth0|jane' });
  await send('PUT', `${first}/${id}`, { type: link.type, subject: 'auth0|5f7c8ec7c33c6c004bbafe82' });
  await send('POST', `${users}/${jane}/user-authentication-password-profile-info`, {
    type: 'user_authentication_password_profile_info',
    username: 'Jane@Example.com',
    password: 'correct horse battery staple',
    password_profile_id: passwords,
  });
  const deletedUser = await send('POST', users, { ...userBody, name: 'Gone', email: 'gone@example.com' });
  await send('POST', `${users}/${deletedUser}/user-authentication-oidc-profile-info`, {
    ...link,
    issuer,
    subject: 'gone',
  });
  await send('DELETE', `${users}/${deletedUser}`);
}

const PROGRAM = ['bin', 'src', 'package.json', 'bunfig.toml'];
/** The suite that runs against the archived program. */
const SUITE = ['test/http/lookup.test.ts', 'test/support/preload.ts'];

async function git(...args: readonly string[]): Promise<string> {
  const child = Bun.spawn(['git', '-C', ROOT, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`git ${args[0]} failed`);
  return output;
}

/** Adds a file of a commit and all code that it imports, except that of src/, to `found`. */
async function collectImports(commit: string, path: string, found: Set<string>): Promise<void> {
  if (found.has(path) || path.startsWith('src/') || !path.endsWith('.ts')) return;
  found.add(path);
  const imports = new Bun.Transpiler({ loader: 'ts' }).scanImports(await git('show', `${commit}:${path}`));
  for (const { path: from } of imports) {
    if (from.startsWith('.')) await collectImports(commit, join(dirname(path), from), found);
  }
}

/** Archives the program of a commit, and its lookup suite with all imports. */
async function archiveCode(commit: string): Promise<void> {
  const { version } = JSON.parse(await git('show', `${commit}:package.json`)) as { version: string };
  const files = new Set<string>();
  for (const path of SUITE) await collectImports(commit, path, files);
  const to = join(RELEASES, version, 'code.tgz');
  await git('archive', '--format=tar.gz', '-9', '-o', to, commit, ...PROGRAM, ...files);
  console.log(`wrote ${to}`);
}

async function saveDatabase(): Promise<void> {
  await run('init', '--preset-realms', ...DATABASE);
  const args = ['--name', 'kept', '--scope', `${SCOPES} profile-infos:write`, '--json'];
  const client = JSON.parse(await run('client', 'create', ...args, ...DATABASE)) as ClientCredentials;
  const { url, stop } = await serve();
  await createRecords(url, client).finally(stop);
  mkdirSync(RELEASE, { recursive: true });
  await run('export', join(RELEASE, 'export.jsonl'), ...DATABASE);
  copyFileSync(path, join(RELEASE, 'authrealm.db'));
  copyFileSync(`${path}.key`, join(RELEASE, 'authrealm.db.key'));
  writeFileSync(join(RELEASE, 'client.json'), `${JSON.stringify(client, null, 2)}\n`);
  console.log(`wrote ${RELEASE}`);
}

const [option, tag] = process.argv.slice(2);
try {
  if (option === '--code' && tag !== undefined) await archiveCode(tag);
  else {
    if ((await git('status', '--porcelain')) !== '')
      throw new Error('commit all changes before you run this script');
    await saveDatabase();
    await archiveCode('HEAD');
  }
} finally {
  rmSync(folder, { recursive: true });
}
