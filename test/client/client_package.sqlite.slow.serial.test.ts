import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCaptureProxy } from '../support/capture_proxy.ts';
import { compileErrors } from '../support/client_library.ts';
import { sharedNpmPackage } from '../support/npm_package.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder, startService } from '../support/service.ts';

/** The client library as packed for npm, in another project, under Node.js, Bun and TypeScript. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCOPE = ['realms', 'profiles', 'users', 'profile-infos'].flatMap((noun) => [
  `${noun}:read`,
  `${noun}:write`,
]);

const service = await startService();
const { clientId, secret } = await service.client([...SCOPE, 'sign-in'].join(' '));
const environment = {
  AUTHREALM_URL: service.url,
  AUTHREALM_CLIENT_ID: clientId,
  AUTHREALM_CLIENT_SECRET: secret,
};
/** The project, with only the package and its dependencies installed. */
const project = join(freshFolder(), 'project');
const installed = join(project, 'node_modules/authrealm');
mkdirSync(installed, { recursive: true });
const packed = await sharedNpmPackage();
const { code, stderr } = await runCommand(['tar', 'xzf', packed, '-C', installed, '--strip-components=1']);
expect([code, stderr]).toEqual([0, '']);
symlinkSync(join(ROOT, 'node_modules/zod'), join(project, 'node_modules/zod'));
writeFileSync(join(project, 'package.json'), '{"type":"module"}');

const blocks = (page: string, language: string): string[] =>
  [
    ...readFileSync(join(ROOT, page), 'utf8').matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms')),
  ].map(([, block]) => block ?? '');

test('the client package is one file that uses only APIs of browsers', () => {
  const program = readFileSync(join(installed, 'dist/client.js'), 'utf8');
  expect(program).not.toMatch(/\b(Bun|Buffer|process|require|__dirname)\b|from ["']|import\(/);
  expect(program.length).toBeLessThan(64 * 1024);
  expect(existsSync(join(installed, 'node_modules'))).toBe(false);
});

test.each([
  ['Node.js', 'node'],
  ['Bun', process.execPath],
])(
  'the examples of docs/client.md run under %s and ignore proxies of the environment',
  async (_, runtime) => {
    const proxy = startCaptureProxy();
    writeFileSync(join(project, 'examples.js'), blocks('docs/client.md', 'js').join('\n'));
    const { code, stdout, stderr } = await runCommand([runtime, join(project, 'examples.js')], {
      ...environment,
      ...proxy.environment,
    });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(
      'Jane Doe\njane\nJane Doe jane@example.com\n1\nchanged by another writer\nthe password is right\n',
    );
    expect(proxy.methods).toEqual([]);
  },
  300_000,
);

test('the commands of docs/client.md run', async () => {
  const bin = join(freshFolder(), 'bin');
  mkdirSync(bin);
  symlinkSync(AUTHREALM, join(bin, 'authrealm'));
  const [, commands = ''] = blocks('docs/client.md', 'sh');
  const PATH = `${bin}:${process.env.PATH}`;
  const { code, stdout, stderr } = await runCommand(['sh', '-e'], { ...environment, PATH }, commands);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^username +jane$/m);
  expect(stdout).toMatch(/^given_name +Jane$/m);
  expect(stdout).not.toContain('correct horse');
}, 300_000);

describe('in TypeScript', () => {
  const HEAD = `import { AuthrealmError, connect, eq, type Entry } from 'authrealm/client';
const directory = connect({ url: 'http://127.0.0.1:1', token: async () => 'x' });
const id = '01234567-89ab-cdef-0123-456789abcdef';
`;

  /** The lines with compiler errors. */
  async function errorLines(lines: readonly string[], module: string): Promise<string[]> {
    const head = HEAD.split('\n').length - 1;
    // A program of a browser has no types of Node.js.
    const found = await compile(HEAD + lines.join('\n'), module, []);
    return found.map((line) => {
      const at = /user\.mts\((\d+),/.exec(line)?.[1];
      return at === undefined ? line : (lines[Number(at) - 1 - head] ?? line);
    });
  }

  /** The errors of the compiler. */
  async function compile(program: string, module: string, types = ['node']): Promise<string[]> {
    const folder = join(project, `typed-${module}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'user.mts'), program);
    return compileErrors(folder, ['user.mts'], module, types);
  }

  const valid = [
    "const user: Entry<'users'> = await directory.users.get([id, id]);",
    "const created = await directory.users.create([id], { name: 'Jane', email: 'jane@example.com', given_name: null });",
    'const etag: string = created.etag; const at: string = user.created_at; const middle: string | null = user.middle_name;',
    "await directory.passwordProfileInfos.create([id, id], { username: 'j', password: 'p', password_profile_id: id });",
    "await directory.passwordProfileInfos.update([id, id, id], { password: 'p' }, { ifMatch: etag });",
    "await directory.oidcProfileInfos.find(id, { issuer: 'https://a.example', subject: 's' });",
    "await directory.passwordProfileInfos.find(id, { username: 'j', password_profile_id: id });",
    "for await (const { email } of directory.users.list([id], { filter: eq('email', at), sort: '-created_at' })) email.trim();",
    "const changed = await directory.users.page([id], { sort: '-updated_at' });",
    'const policy: string = (await directory.realms.get([id])).duplicate_email_policy;',
    'const key: readonly [string, string, string] = (await directory.oidcProfileInfos.get([id, id, id])).key;',
    'const status: string = (await directory.users.modify(user.key, ({ name }) => ({ name }))).creation_status;',
    "const [first] = (await directory.users.getIncluding(user.key, ['oidcProfileInfos'])).included.oidcProfileInfos;",
    "const whole = await directory.users.createIncluding([id], { name: 'J', email: 'j' }, { oidcProfileInfos: [] });",
    'const checked = await directory.checkIdToken([id, id], { idToken: at, nonce: at, userId: id });',
    "const outcome: 'known' | 'linked' | 'created' | undefined = checked.verified ? checked.outcome : undefined;",
    "const { device } = await directory.signUp({ username: 'j', password: 'p', password_profile_id: id, name: 'J', email: 'j' });",
    'const subject: string | undefined = first?.subject;',
    'const words = new AuthrealmError(policy + status + middle).errors.map(({ detail }) => detail);',
    'export { changed, device, key, outcome, subject, whole, words };',
  ];

  /** Each of these lines is a type error. */
  const invalid = [
    '(await directory.users.get([id, id])).nmae;',
    "await directory.users.create([id], { name: 'Jane' });",
    "await directory.users.create([id], { name: 'Jane', email: 'j@example.com', nick: 'J' });",
    "await directory.users.update([id, id], { creation_status: 'COMPLETE' });",
    'await directory.users.get([id]);',
    'await directory.users.list([]);',
    '(await directory.oidcProfiles.get([id, id])).client_secret;',
    "await directory.oidcProfiles.create([id], { name: 'a', discovery_url: 'b', client_id: 'c' });",
    '(await directory.passwordProfileInfos.get([id, id, id])).password;',
    '(await directory.passwordProfileInfos.get([id, id, id])).password_hash;',
    '(await directory.realms.get([id])).preset;',
    'await directory.oidcProfileInfos.update([id, id, id], { oidc_profile_id: id });',
    "await directory.oidcProfileInfos.find(id, { subject: 's' });",
    'await directory.users.find(id, {});',
    "await directory.users.getIncluding([id, id], ['realms']);",
    "(await directory.users.getIncluding([id, id], ['oidcProfileInfos'])).included.passwordProfileInfos;",
    'await directory.realms.getIncluding([id], []);',
    "await directory.users.createIncluding([id], { name: 'J', email: 'j' }, { oidcProfileInfos: [{}] });",
    "directory.users.list([id], { filter: eq('nickname', 'J') });",
    "directory.realms.list([], { filter: eq('name', 'J') });",
    "directory.users.list([id], { sort: 'name' });",
    "directory.users.list([id], { sort: '-updated_at' });",
    "await directory.passwordProfileInfos.create([id, id], { username: 'j', password: 'p' });",
    "await directory.signUp({ username: 'j', password: 'p', name: 'J', email: 'j' });",
    "connect({ url: 'http://127.0.0.1:1', clientId: 'a' });",
  ];

  test('the examples of docs/client.md compile under strict TypeScript', async () => {
    expect(await compile(blocks('docs/client.md', 'js').join('\n'), 'nodenext')).toEqual([]);
  }, 300_000);

  test.each(['nodenext', 'bundler'])(
    'the types accept a valid program and reject every invalid line (%s)',
    async (module) => {
      expect(await errorLines([...valid, ...invalid], module)).toEqual(invalid);
    },
    300_000,
  );
});
