import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildClientLibrary } from '../support/client_library.ts';
import { blocksOf, createFolderWithSdks, runBlocks, runBlocksInTime } from '../support/guides.ts';
import { freshFolder } from '../support/service.ts';

/** Runs the code blocks of the guides about sign-in in order, as a reader would. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('login-page.md: its blocks sign a user in and register another, and authrealm is asked for each password', async () => {
  const blocks = blocksOf('login-page.md');
  const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
  const { outputs, log } = await runBlocksInTime(blocks, { PATH: path }, async () => {
    const folder = freshFolder();
    await buildClientLibrary(join(folder, 'dist'));
    return folder;
  });
  const outputOf = (words: string): string =>
    outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';
  const answer = outputOf('curl -si');
  expect(answer).toMatch(/^HTTP\/1\.1 303 /m);
  expect(answer).toMatch(/^Location: \/\r$/im);
  expect(
    answer.match(/^Set-Cookie: (?:session|device)=[\w-]+; .*; HttpOnly; SameSite=Lax\r$/gim),
  ).toHaveLength(2);
  expect(outputOf('setup.txt')).toMatch(/HTTP\/1\.1 303 [\s\S]*^Set-Cookie: session=[\w-]+;/im);
  // More than one where the machine was too busy for it.
  expect(log.match(/"route":"[^"]+\/check"/g)?.length).toBeGreaterThanOrEqual(1);
}, 300_000);

test('test-suite.md: its blocks start a suite, and sign in with both SDKs, with a secret and without, and through a provider', async () => {
  const blocks = [...blocksOf('test-suite.md')];
  const presets = blocks.findIndex(({ text }) => text.includes('--preset-realms'));
  blocks.splice(presets, 0, ...blocks.slice(presets, presets + 1));
  const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
  const { outputs } = await runBlocksInTime(blocks, { PATH: path }, createFolderWithSdks);
  const outputsOf = (words: string) =>
    outputs.filter((_, index) => blocks[index]?.language === 'sh' && blocks[index]?.text.includes(words));

  const [created = '', again] = outputsOf('--preset-realms');
  expect(created.match(/ {2}.+$/gm)).toEqual([
    '  Buyer Organization',
    '  Merchant Organization',
    '  Account Management Realm',
  ]);
  expect(again).toBe(created.replaceAll('\n', ' (exists)\n'));
  const [used = ''] = outputsOf('node shop.mjs');
  expect(used).toEndWith('Jane Doe true\n');
  const [listed = ''] = outputsOf('-H "Authorization');
  const names = JSON.parse(listed).data.map(({ name }: { name: string }) => name);
  expect(names.sort()).toEqual([
    'Account Management Realm',
    'Buyer Organization',
    'Fixtures',
    'Merchant Organization',
  ]);
  const [reset = ''] = outputsOf('authrealm delete --in-pages');
  expect(reset).toContain('deleted 4 records');
  expect(reset).toContain('imported 4, unchanged 0');
  const [inMemory = ''] = outputsOf('sqlite::memory:');
  expect(JSON.parse(inMemory)).toMatchObject({ status: 'ok' });

  const signedIn = 'John Doe 00000000-0000-4000-8000-000000000003 true\n';
  // The SDK prints lines about its token before.
  expect(outputsOf('node sign-in.mjs').map((output) => output.slice(-signedIn.length))).toEqual([
    signedIn,
    signedIn,
  ]);
  const [throughProvider = ''] = outputsOf('node provider-sign-in.mjs');
  expect(throughProvider).toEndWith('\nJohn Doe 00000000-0000-4000-8000-000000000003\n');
  expect(outputsOf('node shopper-sign-in.mjs')).toEqual(['201 John Doe\n']);
}, 300_000);

const RIGHTS = 'profiles:read profiles:write realms:read realms:write settings:write';
/** What the readers of the guides have: a served account realm, a client, the rights of an administrator, and a provider. */
const SETUP = {
  language: 'sh',
  text: `umask 077
authrealm init >init.txt
export REALM="$(sed -n 's/^realm  *//p' init.txt)"
printf 'secret of the provider' >provider-secret.txt
authrealm client create --name shop --scope users:read >shop.txt
CLIENT="$(sed -n 's/^client_id  *//p' shop.txt)"
authrealm client create --name admin --scope "${RIGHTS}" >admin.txt
export AUTHREALM_URL=http://127.0.0.1:8080
export AUTHREALM_CLIENT_ID="$(sed -n 's/^client_id  *//p' admin.txt)"
export AUTHREALM_CLIENT_SECRET="$(sed -n 's/^client_secret  *//p' admin.txt)"
authrealm serve --offline >serve.log 2>&1 &
service=$!
until curl -sf http://127.0.0.1:8080/readyz || ! kill -0 "$service"; do sleep 0.1; done
ADMIN_TOKEN="$(curl -sf "$AUTHREALM_URL/oauth/access_token" -d grant_type=client_credentials \\
  -d "client_id=$AUTHREALM_CLIENT_ID" -d "client_secret=$AUTHREALM_CLIENT_SECRET" |
  sed 's/.*"access_token":"\\([^"]*\\).*/\\1/')"
`,
};

test.each([
  ['provider-sign-in.md', ['https://shop.example.com/callback', 'sign-in sign-up']],
  ['registration.md', ['"enable_self_signup":true', 'sign-in sign-up']],
])(
  '%s: its commands allow the sign-ins that it describes',
  async (guide, shown) => {
    const commands = blocksOf(guide).filter(({ language }) => language === 'sh');
    const stop = { language: 'sh', text: 'kill "$service"\n' };
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const { outputs } = await runBlocks([SETUP, ...commands, stop], { PATH: path });
    const output = outputs[1] ?? '';
    expect(shown.filter((words) => !output.includes(words))).toEqual([]);
  },
  120_000,
);
