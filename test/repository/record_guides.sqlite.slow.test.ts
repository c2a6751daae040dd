import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildClientLibrary } from '../support/client_library.ts';
import { type Block, blocksOf, runBlocks } from '../support/guides.ts';
import { freshFolder } from '../support/service.ts';

/** Runs the code blocks of the guides about records in order, as a reader would. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READ = 'users:read profile-infos:read changes:read';
const WRITE = 'profiles:read profiles:write users:write profile-infos:write';

const sh = (text: string): Block => ({ language: 'sh', text });

/** What the readers have: a served realm with a password profile, a client with its token, and a client secret of a provider. */
const SETUP = sh(`umask 077
authrealm init >init.txt
export REALM="$(sed -n 's/^realm  *//p' init.txt)"
export PASSWORDS="$(sed -n 's/^password profile  *//p' init.txt)"
authrealm client create --name admin --scope "${READ} ${WRITE}" >admin.txt
export AUTHREALM_URL=http://127.0.0.1:8080
export AUTHREALM_CLIENT_ID="$(sed -n 's/^client_id  *//p' admin.txt)"
export AUTHREALM_CLIENT_SECRET="$(sed -n 's/^client_secret  *//p' admin.txt)"
printf 'secret of the new address' >provider-secret.txt
authrealm serve --offline >serve.log 2>&1 &
service=$!
until curl -sf http://127.0.0.1:8080/readyz || ! kill -0 "$service"; do sleep 0.1; done
TOKEN="$(curl -sf "$AUTHREALM_URL/oauth/access_token" -d grant_type=client_credentials \\
  -d "client_id=$AUTHREALM_CLIENT_ID" -d "client_secret=$AUTHREALM_CLIENT_SECRET" |
  sed 's/.*"access_token":"\\([^"]*\\).*/\\1/')"
`);

/** A block that imports lines of the realm. */
function importing(lines: readonly object[]): Block {
  const text = lines.map((line) => JSON.stringify({ realm_id: '$REALM', ...line })).join('\n');
  return sh(`cat >records.ndjson <<END\n${text}\nEND\nauthrealm import records.ndjson\n`);
}

/** What the realm and its feed contain in the end. The service stops: then its log is complete. */
const RESULT = [
  sh('authrealm export --realm "$REALM"\n'),
  sh(
    'curl -sf -H "Authorization: Bearer $TOKEN" "$AUTHREALM_URL/v2/authentication-realms/$REALM/changes?limit=100"\n',
  ),
  sh('kill "$service"\n'),
];

interface ExportedLine {
  readonly type: string;
  readonly id: string;
  readonly user_authentication_info_id: string;
  readonly subject?: string;
  readonly issuer?: string;
  readonly username?: string;
  readonly email: string;
  readonly meta: { readonly updated_at: string; readonly issuer: string; readonly email_vouched: boolean };
}

interface FeedEvent {
  readonly type: string;
  readonly data: {
    readonly client_id: string;
    readonly members: readonly string[];
    readonly user_id: string | null;
  };
}

/** Runs the blocks of a guide between those that make a directory and those that read it. */
async function follow(guide: string, more: readonly Block[], folder = freshFolder()) {
  const blocks = [SETUP, ...more, ...blocksOf(guide), ...RESULT];
  const { outputs } = await runBlocks(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` }, folder);
  const [exported = '', feed = ''] = outputs.slice(-RESULT.length);
  const lines = exported.trim().split('\n');
  const records = lines.map((line) => JSON.parse(line) as ExportedLine);
  return {
    outputOf: (words: string) => outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '',
    recordsOf: (type: string) => records.filter((record) => record.type === type),
    events: (JSON.parse(feed) as { readonly data: readonly FeedEvent[] }).data,
  };
}

const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const [JANE, JOHN, PROFILE] = [id(1), id(2), id(3)];
const WRITTEN_AT = '2026-01-31T09:00:00.000Z';
const meta = { created_at: WRITTEN_AT, updated_at: WRITTEN_AT };

const USER = 'user_authentication_info';
const LINK = 'user_authentication_oidc_profile_info';
const USERNAME = 'user_authentication_password_profile_info';

const ISSUER = 'https://login.example.com';
const GOOGLE = 'https://accounts.google.com';

function link(number: number, user: string, identity: object, profileId = PROFILE): object {
  const at = { user_authentication_info_id: user, oidc_profile_id: profileId };
  return { type: LINK, id: id(number), ...at, ...identity, meta };
}

function profile(profileId: string, issuer: string): object {
  return {
    ...{ type: 'oidc-profile', id: profileId, name: 'Login', client_id: 'shop' },
    discovery_url: `${issuer}/.well-known/openid-configuration`,
    meta: { ...meta, issuer },
  };
}

/** Two users and a profile of a provider. */
const USERS = [
  profile(PROFILE, ISSUER),
  { type: USER, id: JANE, name: 'Jane Doe', email: 'jane@example.com', meta },
  { type: USER, id: JOHN, name: 'John Doe', email: 'john@example.com', meta },
];

test.each([
  ['new subjects', 'jane\tjane at SSO\njohn\tjohn at SSO\n', ['subject', 'issuer'], ' at SSO'],
  ['the same subjects', undefined, ['issuer'], ''],
])(
  'moved-provider.md: its blocks give the links of a provider a new issuer and %s, and keep IDs and users',
  async (_, subjects, members, suffix) => {
    const folder = freshFolder();
    if (subjects !== undefined) writeFileSync(join(folder, 'subjects.tsv'), subjects);
    const lines = [
      ...USERS,
      profile(id(4), GOOGLE),
      link(11, JANE, { issuer: ISSUER, subject: 'jane' }),
      link(12, JOHN, { issuer: ISSUER, subject: 'john' }),
      link(13, JANE, { issuer: GOOGLE, subject: 'jane' }, id(4)),
    ];
    const more = [importing(lines), sh(`PROFILE=${PROFILE}\n`)];
    const { outputOf, recordsOf, events } = await follow('moved-provider.md', more, folder);

    const counts = 'imported 0, unchanged 0, replaced 2, refused 0\n';
    const dryRun = 'dry run, nothing was changed; the import would have ';
    expect(outputOf('--dry-run')).toBe(dryRun + counts + counts);
    const shown = recordsOf(LINK).map((each) => [
      each.id,
      each.user_authentication_info_id,
      each.issuer,
      each.subject,
      each.meta.updated_at > WRITTEN_AT,
    ]);
    expect(shown).toEqual([
      [id(11), JANE, 'https://sso.example.com', `jane${suffix}`, true],
      [id(12), JOHN, 'https://sso.example.com', `john${suffix}`, true],
      [id(13), JANE, GOOGLE, 'jane', false],
    ]);
    expect(recordsOf(USER).map((each) => each.meta.updated_at)).toEqual([WRITTEN_AT, WRITTEN_AT]);
    expect(recordsOf('oidc-profile').map((each) => each.meta.issuer)).toEqual([
      'https://sso.example.com',
      GOOGLE,
    ]);
    const updated = 'user-authentication-oidc-profile-info.updated';
    expect(events.slice(-3).map(({ type, data }) => [type, data.client_id, data.members])).toEqual([
      [updated, 'import', members],
      [updated, 'import', members],
      ['oidc-profile.updated', expect.any(String), expect.arrayContaining(['issuer', 'discovery_url'])],
    ]);
  },
  120_000,
);

test('move-links.md: its blocks move a link, and then make one user of two with the links of both', async () => {
  const folder = freshFolder();
  await buildClientLibrary(join(folder, 'dist'));
  const lines = [
    ...USERS,
    link(11, JANE, { issuer: ISSUER, subject: 'jane' }),
    link(12, JANE, { issuer: GOOGLE, subject: '110248495921238986420' }),
    link(13, JOHN, { issuer: ISSUER, subject: 'john' }),
    {
      ...{ type: USERNAME, id: id(21), user_authentication_info_id: JANE, username: 'jane', meta },
      password_profile_id: '$PASSWORDS',
    },
  ];
  const more = [importing(lines), sh(`export FROM=${JANE} TO=${JOHN} LINK=${id(11)}\n`)];
  const { outputOf, recordsOf, events } = await follow('move-links.md', more, folder);

  const moved = recordsOf(LINK).find(({ subject }) => subject === 'jane');
  expect(outputOf('node move_link.mjs').trim()).toBe(moved?.id ?? '');
  expect(recordsOf(USER).map((each) => each.id)).toEqual([JOHN]);
  const owned = [...recordsOf(LINK), ...recordsOf(USERNAME)];
  expect(owned.map((each) => each.user_authentication_info_id)).toEqual([JOHN, JOHN, JOHN, JOHN]);
  expect(owned.map((each) => each.subject ?? each.username).sort()).toEqual([
    '110248495921238986420',
    'jane',
    'jane',
    'john',
  ]);
  expect(owned.map((each) => each.id).filter((each) => each < id(100))).toEqual([id(13)]);
  const names = { [JANE]: 'Jane', [JOHN]: 'John' };
  const written = events
    .slice(-11)
    .map(({ type, data }) => `${type.replace('user-authentication-', '')} ${names[data.user_id ?? '']}`);
  expect(written).toEqual([
    'oidc-profile-info.deleted Jane',
    'info.updated Jane',
    'oidc-profile-info.created John',
    'info.updated John',
    'password-profile-info.deleted Jane',
    'oidc-profile-info.deleted Jane',
    'info.deleted Jane',
    'oidc-profile-info.created John',
    'info.updated John',
    'password-profile-info.created John',
    'info.updated John',
  ]);
}, 120_000);

test('realms-as-code.md: its blocks import a realm once, and find and undo a change by hand', async () => {
  const { outputOf } = await follow('realms-as-code.md', []);
  expect(outputOf('--dry-run directory.ndjson\n').split('\n')).toEqual([
    'dry run, nothing was changed; the import would have imported 3, unchanged 0, replaced 0, refused 0',
    'imported 3, unchanged 0, replaced 0, refused 0',
    'imported 0, unchanged 3, replaced 0, refused 0',
    '',
  ]);
  const undone = outputOf('name=Renamed');
  expect(undone).toContain('line 2: differs from the stored record in name\n');
  expect(undone).toContain('would have imported 0, unchanged 2, replaced 0, refused 1\n');
  expect(undone).toContain('exit code 3\n');
  expect(undone).toEndWith('\nimported 0, unchanged 2, replaced 1, refused 0\n');
}, 120_000);

test('users-without-email.md: its blocks create and find users under .invalid, and vouch for an address that is written', async () => {
  const { outputOf, recordsOf } = await follow('users-without-email.md', []);
  const listed = outputOf('list users').split('\n');
  expect(listed.filter((line) => line.includes('@none.invalid'))).toHaveLength(2);
  // The import did not vouch for the address of the second.
  const users = recordsOf(USER).map((each) => [each.email, each.meta.email_vouched]);
  expect(users.sort()).toEqual([
    ['4711@none.invalid', true],
    ['john@example.com', true],
  ]);
  expect(recordsOf(USERNAME).map((each) => each.username)).toEqual(['jane']);
}, 120_000);
