import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PASSWORD, startRecordCommands } from '../support/record_commands.ts';
import { createParents, FULL_SCOPE } from '../support/resource_cases.ts';
import { freshFolder } from '../support/service.ts';

/** `get --include` and `create --included` against the real service. */

const BOTH = ['--include', 'oidc-profile-info,password-profile-info'];

const commands = await startRecordCommands();
const { service, output } = commands;
const home = await createParents(service, await service.token(FULL_SCOPE));
const run = (args: readonly string[], input?: string) => commands.run(args, { input });

interface Shown {
  readonly id: string;
  readonly included: Readonly<Record<string, readonly object[]>>;
}

const json = async (args: readonly string[], input?: string) =>
  JSON.parse(await output([...args, '--json'], { input })) as Shown;

const linkTo = (username: string) => ({
  type: 'user_authentication_password_profile_info',
  ...{ username, password: PASSWORD, password_profile_id: home.passwordProfile },
});

const createUser = () => [
  'create',
  'user-info',
  home.realm,
  'name=Whole',
  'email=whole@example.com',
  '--included',
];

test('create --included creates a user with links from a file or standard input', async () => {
  const file = join(freshFolder(), 'links.json');
  writeFileSync(file, JSON.stringify([linkTo('whole')]));
  const made = await json([...createUser(), file]);
  expect(made.included).toMatchObject({ password_profile_infos: [{ username: 'whole' }] });
  expect(await json(['get', 'user-info', home.realm, made.id, ...BOTH])).toEqual(made);
  const input = JSON.stringify([linkTo('second')]);
  expect((await output([...createUser(), '-', '--id'], { input })).trim()).toMatch(/^[0-9a-f-]{36}$/);
  for (const [given, message] of [
    ['{}', '--included must contain a JSON array of objects'],
    ['[{"username": "x"}]', 'each object in --included needs a type'],
  ] as const) {
    const { code, stderr } = await run([...createUser(), '-'], given);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
  const taken = await run([...createUser(), '-'], input);
  expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining('included.0.username')]);
  const realm = await run(['create', 'realm', 'name=Shop', '--included', file]);
  expect([realm.code, realm.stderr]).toEqual([2, expect.stringContaining('does not apply')]);
});

test('get --include shows a user with its links, in tables and as one line of JSON', async () => {
  const { id } = await json([...createUser(), '-'], JSON.stringify([linkTo('shown')]));
  const get = ['get', 'user-info', home.realm, id];
  const shown = await output([...get, ...BOTH]);
  const [plain] = shown.split('\n\n');
  expect(`${plain}\n`).toBe(await output(get));
  expect(shown).toMatch(/\n\noidc-profile-info: 0\n\npassword-profile-info: 1\nid +username .*\n.* shown /);
  expect(await json([...get, ...BOTH])).toMatchObject({
    name: 'Whole',
    included: { oidc_profile_infos: [], password_profile_infos: [{ user_id: id, username: 'shown' }] },
  });
  const refused = await run([...get, '--include', 'realm']);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    'authrealm: --include must be a comma-separated list of oidc-profile-info, password-profile-info\n',
  ]);
  const childless = await run(['get', 'realm', home.realm, '--include', 'user-info']);
  expect([childless.code, childless.stderr]).toEqual([2, 'authrealm: --include does not apply to realm\n']);
});
