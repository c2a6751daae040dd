import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { PASSWORD, type RunOptions, startRecordCommands } from '../support/record_commands.ts';
import { freshFolder, ISSUER } from '../support/service.ts';

/** The commands `get`, `list`, `find`, `create`, `update` and `delete` against the real service. */

const { environment, realm, run, output, json, createRecord } = await startRecordCommands();
const folder = freshFolder();

const newUser = (name = 'Jane Doe') =>
  createRecord('user-info', realm, `name=${name}`, 'email=jane@example.com');
const discovery = `discovery_url=${ISSUER}.well-known/openid-configuration`;

test('every resource can be created, shown, listed, updated and deleted', async () => {
  const own = await createRecord('realm', 'name=Store');
  const secretFile = join(folder, 'provider-secret');
  writeFileSync(secretFile, PASSWORD);
  const oidc = await createRecord(
    'oidc-profile',
    own,
    'name=Login',
    discovery,
    'client_id=shop',
    `client_secret=@${secretFile}`,
  );
  const passwords = await createRecord(
    'password-profile',
    own,
    'name=Passwords',
    'enable_one_time_password_token=true',
  );
  const user = await createRecord('user-info', own, 'name=Jane Doe', 'email=jane@example.com');
  const link = await createRecord(
    'oidc-profile-info',
    own,
    user,
    'subject=auth0|1',
    `issuer=${ISSUER}`,
    `oidc_profile_id=${oidc}`,
  );
  const name = await createRecord(
    'password-profile-info',
    own,
    user,
    'username=jane',
    `password_profile_id=${passwords}`,
    'password=@-',
  );
  const rows: [string, string[], string, object][] = [
    ['realm', [own], 'name=Bazaar', { id: own, name: 'Bazaar' }],
    ['oidc-profile', [own, oidc], 'name=SSO', { realm_id: own, name: 'SSO' }],
    ['password-profile', [own, passwords], 'username_format=email', { enable_one_time_password_token: true }],
    [
      'user-info',
      [own, user],
      'given_name=Jane',
      { name: 'Jane Doe', given_name: 'Jane', family_name: null },
    ],
    ['oidc-profile-info', [own, user, link], 'subject=auth0|2', { user_id: user, subject: 'auth0|2' }],
    ['password-profile-info', [own, user, name], 'password=@-', { user_id: user, username: 'jane' }],
  ];
  for (const [resource, key, change, expected] of rows) {
    const [updated] = await json(['update', resource, ...key, change], { input: PASSWORD });
    expect(updated).toMatchObject(expected);
    const [shown] = await json(['get', resource, ...key]);
    expect(shown).toMatchObject({ ...expected, id: key.at(-1), links: { self: expect.any(String) } });
    const listed = await json(['list', resource, ...key.slice(0, -1)]);
    expect(listed.map(({ id }) => id)).toContain(key.at(-1) ?? '');
  }
  for (const [resource, key] of rows.toReversed()) {
    expect(await output(['delete', '--yes', resource, ...key])).toBe('');
    expect((await run(['get', resource, ...key])).code).toBe(1);
  }
}, 300_000);

test('get prints two columns, list prints a table, and both accept full resource names', async () => {
  const own = await createRecord('authentication-realm', 'name=Store');
  const user = await createRecord('user-authentication-info', own, 'name=Jane Döe', 'email=jane@example.com');
  await createRecord('user_authentication_info', own, 'name=李', 'email=li@example.com');
  const shown = await output(['get', 'user-info', own, user]);
  expect(shown).toMatch(
    new RegExp(`^realm_id         ${own}\nid               ${user}\nname             Jane Döe\n`),
  );
  expect(shown).toMatch(/^given_name {7}-\n(.*\n)*etag {13}"\S+"\nlinks.self {7}http:\/\/\S+\n$/m);
  const table = (await output(['list', 'user-info', own])).split('\n');
  const at = (line: string | undefined, text: string) =>
    Bun.stringWidth(line?.slice(0, line.indexOf(text)) ?? '');
  expect(table[0]).toMatch(/^id +name +email +given_name /);
  expect(table).toHaveLength(4);
  expect(at(table[1], 'li@')).toBe(at(table[0], 'email'));
  expect(at(table[2], 'jane@')).toBe(at(table[0], 'email'));
}, 300_000);

test('the short names of resources reach the same records', async () => {
  const own = await createRecord('realms', 'name=Store');
  expect(await json(['get', 'realms', own])).toMatchObject([{ id: own }]);
  const secretFile = join(folder, 'secret-of-the-provider');
  writeFileSync(secretFile, PASSWORD);
  const secret = `client_secret=@${secretFile}`;
  const provider = await createRecord('providers', own, 'name=Login', discovery, 'client_id=shop', secret);
  const passwords = await createRecord('password-profile', own, 'name=Passwords');
  const user = await createRecord('users', own, 'name=Jane Doe', 'email=jane@example.com');
  const identity = ['subject=auth0|1', `issuer=${ISSUER}`, `oidc_profile_id=${provider}`];
  const link = await createRecord('links', own, user, ...identity);
  const username = await createRecord(
    'usernames',
    own,
    user,
    'username=jane',
    `password_profile_id=${passwords}`,
    `password=@${secretFile}`,
  );
  expect(await json(['list', 'oidc-profile-info', own, user])).toMatchObject([{ id: link }]);
  expect(await json(['list', 'password-profile-info', own, user])).toMatchObject([{ id: username }]);
  expect(await json(['list', 'user-info', own])).toMatchObject([{ id: user }]);
  expect(await json(['list', 'oidc-profile', own])).toMatchObject([{ id: provider }]);
}, 300_000);

test('list applies --limit, --filter and --sort', async () => {
  const own = await createRecord('realm', 'name=Store');
  const client = JSON.parse((await run(['list', 'realm', '--json', '--limit', '1'])).stdout);
  expect(client.id).toBe(own);
  for (let index = 0; index < 4; index += 1) {
    await output(['create', 'user-info', own, `name=user ${index}`, 'email=u@example.com']);
  }
  const names = async (...args: string[]) =>
    (await json(['list', 'user-info', own, ...args])).map(({ name }) => name);
  expect(await names('--sort', 'created_at', '--limit', '3')).toEqual(['user 0', 'user 1', 'user 2']);
  expect(await names('--filter', "in(name,'user 1',USER 3)")).toEqual(['user 3', 'user 1']);
  const none = await run(['list', 'user-info', own, '--filter', 'eq(name,nobody)']);
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'authrealm: no records\n' });
}, 300_000);

test('find prints links with the ID of their user', async () => {
  const user = await newUser();
  const profile = await createRecord('password-profile', realm, 'name=Passwords');
  await createRecord(
    'password-profile-info',
    realm,
    user,
    'username=@@jane',
    `password_profile_id=${profile}`,
    'password=@-',
  );
  const [head, row] = (await output(['find', 'password-profile-info', realm, 'username=@@JANE'])).split('\n');
  expect(head).toMatch(/^user_id +id +username +password_profile_id +created_at$/);
  expect(row).toMatch(new RegExp(`^${user}  \\S+  @jane +${profile} `));
  const both = ['username=@@jane', `password_profile_id=${profile}`];
  expect(await json(['find', 'password-profile-info', realm, ...both])).toHaveLength(1);
  const nobody = await run(['find', 'oidc-profile-info', realm, `issuer=${ISSUER}`, 'subject=nobody']);
  expect([nobody.code, nobody.stderr]).toEqual([0, 'authrealm: no records\n']);
}, 300_000);

test('create and update read members from files and standard input, and an empty value clears a member', async () => {
  const body = join(folder, 'user.json');
  writeFileSync(
    body,
    JSON.stringify({ name: 'from the file', email: 'file@example.com', given_name: 'File' }),
  );
  const [first] = await json(['create', 'user-info', realm, '--body', body, 'name=from the line']);
  expect(first).toMatchObject({ name: 'from the line', email: 'file@example.com', given_name: 'File' });
  const key = [realm, first?.id ?? ''];
  const [cleared] = await json(['update', 'user-info', ...key, 'given_name=', 'name=123']);
  expect(cleared).toMatchObject({ given_name: null, name: '123' });
  const [piped] = await json(['update', 'user-info', ...key, '--body', '-'], { input: '{"name":"piped"}' });
  expect(piped).toMatchObject({ name: 'piped' });
  const [shop] = await json(['update', 'realm', realm, 'redirect_uris=["https://shop.example/back"]']);
  expect(shop).toMatchObject({ redirect_uris: ['https://shop.example/back'] });
}, 300_000);

test('--if-match rejects a write to a changed record, and an idempotency key creates one record', async () => {
  const args = [
    'create',
    'user-info',
    realm,
    'name=Once',
    'email=once@example.com',
    '--idempotency-key',
    'import-1',
  ];
  const [first] = await json(args);
  expect((await json(args))[0]?.id).toBe(first?.id ?? '');
  const key = [realm, first?.id ?? ''];
  await output(['update', 'user-info', ...key, 'name=Twice', '--if-match', first?.etag ?? '']);
  for (const command of [
    ['update', 'user-info', ...key, 'name=Late'],
    ['delete', '--yes', 'user-info', ...key],
  ]) {
    const { code, stderr } = await run([...command, '--if-match', first?.etag ?? '']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('412 Precondition Failed: ')]);
  }
}, 300_000);

const ID = '01234567-89ab-cdef-0123-456789abcdef';
const CREATE_USER = ['create', 'user-info', ID];
const UPDATE_NAME = ['update', 'password-profile-info', ID, ID, ID];
const GET_REALM = ['get', 'realm', ID];

/** Exit code 2 for an invalid command line, 1 for a failure. */
const FAILURES: Readonly<Record<1 | 2, readonly [string, readonly string[], RegExp, RunOptions?][]>> = {
  2: [
    ['a password as an argument', [...UPDATE_NAME, `password=${PASSWORD}`], /password=@FILE/],
    ['a password that starts with an escaped @', [...UPDATE_NAME, `password=@@${PASSWORD}`], /password=@-/],
    [
      'a client secret as an argument',
      ['update', 'oidc-profile', ID, ID, `client_secret=${PASSWORD}`],
      /client_secret=@-/,
    ],
    ['an unknown resource', ['get', 'persons', ID], /must be one of realm, oidc-profile, /],
    ['too few IDs', ['get', 'user-info', ID], /expected REALM_ID ID after "user-info": /],
    ['too many IDs', ['list', 'realm', ID], /expected no ID after "realm"/],
    ['an invalid ID', ['get', 'realm', '../x'], /8-4-4-4-12/],
    ['an unknown member', [...CREATE_USER, 'nmae=Jane'], /create accepts name, email, /],
    ['a read-only member', ['update', 'user-info', ID, ID, 'creation_status=COMPLETE'], /unknown member/],
    ['an immutable member', [...UPDATE_NAME, `password_profile_id=${ID}`], /unknown member/],
    ['an unknown body member', [...CREATE_USER, '--body', '-'], /unknown member/, { input: '{"id":"x"}' }],
    ['a body that is not an object', [...CREATE_USER, '--body', '-'], /JSON object/, { input: '[1]' }],
    ['a member without =', [...CREATE_USER, 'Jane'], /name=value/],
    ['a repeated member', [...CREATE_USER, 'name=a', 'name=b'], /twice/],
    ['two reads of standard input', [...CREATE_USER, 'name=@-', 'email=@-'], /once/],
    ['an update without members', ['update', 'user-info', ID, ID], /no members given/],
    ['an unsupported filter', ['list', 'realm', '--filter', 'eq(name,x)'], /cannot be filtered/],
    ['a limit of 0', ['list', 'realm', '--limit', '0'], /at least 1/],
    [
      'find by the subject alone',
      ['find', 'oidc-profile-info', ID, 'subject=x'],
      /find needs issuer=… subject=…, or by id=…/,
    ],
    ['find of users', ['find', 'user-info', ID, 'name=x'], /find works for oidc-profile-info, password-/],
    ['an ETag with a space', ['delete', 'realm', ID, '--if-match', 'a b'], /visible ASCII/],
    ['find by an empty value', ['find', 'password-profile-info', ID, 'username='], /username has no value/],
    ['an unknown sort key', ['list', 'user-info', ID, '--sort', 'name'], /created_at, -created_at, id, -id/],
    ['an invalid URL', [...GET_REALM, '--url', 'shop'], /--url must be/],
    ['an unknown variable', GET_REALM, /CLIENTID is not a variable/, { more: { AUTHREALM_CLIENTID: 'x' } }],
  ],
  1: [
    ['a missing file', [...CREATE_USER, 'name=@/nowhere/at-all'], /nowhere/],
    ['an endless file', [...CREATE_USER, 'name=@/dev/zero'], /is larger than 65536 bytes/],
    [
      'an unknown record',
      GET_REALM,
      /^authrealm: GET \S+ was answered 404 Not Found: Resource not found: check the IDs .+$/m,
    ],
    ['a value that the service rejects', [...CREATE_USER, 'name=Jane', 'email=@@'], /was answered 40\d /],
  ],
};

describe.each([2, 1] as const)('exit code %d', (code) => {
  test.each(FAILURES[code])(`%s exits with ${code}`, async (_, args, message, options = {}) => {
    const result = await run(args, options);
    expect([result.code, result.stdout]).toEqual([code, '']);
    expect(result.stderr).toMatch(message);
    expect(result.stderr).not.toMatch(/^ +at \S+ \(/m);
  });
});

test('input that is not UTF-8 is refused from files and standard input', async () => {
  const file = join(folder, 'latin-1');
  for (const [bytes, word] of [
    [[0x4a, 0xe9], `name=@${file}`],
    [[0xe2, 0x82], `name=@${file}`],
    [[...'{"name":"'].map((each) => each.charCodeAt(0)).concat(0xff, 0x22, 0x7d), `--body=${file}`],
  ] as const) {
    writeFileSync(file, Buffer.from(bytes));
    const { code, stderr } = await run([...CREATE_USER, word]);
    expect([code, stderr]).toEqual([1, `authrealm: ${file} is not UTF-8\n`]);
  }
  const piped = `printf '\\351' | "$0" update user-info ${ID} ${ID} name=@-`;
  const { code, stderr } = await runCommand(['sh', '-c', piped, AUTHREALM], environment);
  expect([code, stderr]).toEqual([1, 'authrealm: standard input is not UTF-8\n']);
}, 300_000);

test('a UTF-8 character may be split between two reads', async () => {
  const user = await newUser();
  const command = `{ printf 'J\\303'; sleep 0.1; printf '\\251'; } | "$0" update user-info ${realm} ${user} --json name=@-`;
  const { stdout } = await runCommand(['sh', '-c', command, AUTHREALM], environment);
  expect(JSON.parse(stdout)).toMatchObject({ name: 'Jé' });
});

test('a member can be read from a named pipe', async () => {
  const user = await newUser();
  const command = `exec "$0" update user-info ${realm} ${user} --json given_name=@<(printf Piped)`;
  const { stdout } = await runCommand(['bash', '-c', command, AUTHREALM], environment);
  expect(JSON.parse(stdout)).toMatchObject({ given_name: 'Piped' });
});
