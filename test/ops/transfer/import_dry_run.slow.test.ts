import { expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from '../../../src/model/limits.ts';
import { allRows } from '../../support/copy_fixtures.ts';
import { freshDatabase, sqliteAt, type TestDatabase } from '../../support/database.ts';
import { freshFolder } from '../../support/folder.ts';
import { bytesOf, type ImportSource, mintId, realmLines } from '../../support/import_fixtures.ts';
import { runAuthrealm } from '../../support/processes.ts';

/** `import --dry-run`, which only reads the database. */

setDefaultTimeout(300_000);

const folder = freshFolder();
const file = (name: string, source: ImportSource): string => {
  const path = join(folder, name);
  writeFileSync(path, bytesOf(source));
  return path;
};
const run = (...args: string[]) => runAuthrealm(['import', ...args], {});
const DRY = 'dry run, nothing was changed; the import would have ';

/** Imports dry and then truly. Returns what both printed, which must be the same, without progress and advice. */
async function runBoth({ args, ...database }: TestDatabase, path: string, ...options: string[]) {
  const before = await allRows(database);
  const dry = await run(path, '--dry-run', ...options, ...args);
  expect(await allRows(database)).toEqual(before);
  const real = await run(path, ...options, ...args);
  const counts = /imported .*/.exec(real.stdout)?.[0];
  expect(dry.stdout.trim().split('\n').at(-1)).toBe(`${DRY}${counts}`);
  expect([dry.code, dry.stderr]).toEqual([real.code, real.stderr]);
  return { code: dry.code, counts, stderr: dry.stderr };
}

test('import --dry-run refuses a missing or in-memory database and creates nothing', async () => {
  for (const database of ['sqlite::memory:', sqliteAt(join(folder, 'never.db')).url]) {
    const { code, stderr } = await run('-', '--dry-run', '--database', database);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/the database .* is missing or empty/)]);
  }
  expect(readdirSync(folder).filter((name) => name.startsWith('never'))).toEqual([]);
});

test('import --dry-run prints the counts and refusals of the import and writes nothing', async () => {
  const database = await freshDatabase();
  const { ids, lines, all } = realmLines();
  const owned = (line: Record<string, unknown>, user: string, members: Record<string, unknown> = {}) => ({
    ...line,
    user_authentication_info_id: user,
    id: mintId(),
    ...members,
  });
  const [second, third, late] = [mintId(), mintId(), mintId()];
  const emails = { ...lines.passwords, id: mintId(), username_format: 'email' };
  const stored = [
    ...all,
    { ...lines.user, id: second },
    owned(lines.link, second, { subject: 'of-the-second' }),
    emails,
  ];
  expect((await run(file('stored.ndjson', stored), ...database.args)).code).toBe(0);
  const upserts = [
    lines.realm,
    { ...lines.oidc, client_secret: 'of-the-provider' },
    { ...lines.passwords, name: 'Renamed' },
    { ...lines.user, name: 'Renamed' },
    lines.name,
    { ...lines.user, id: third },
    owned(lines.link, third),
    owned(lines.link, third, { subject: 'of-the-second' }),
    owned(lines.link, third, { subject: 'twice' }),
    owned(lines.link, second, { subject: 'twice' }),
    { ...lines.link, user_authentication_info_id: third, subject: 'an ID of another user' },
    { ...lines.link, oidc_profile_id: mintId() },
    // The name of the first user becomes free for the third.
    owned(lines.name, third, { username: lines.name.username.toUpperCase() }),
    { ...lines.name, username: 'free' },
    owned(lines.name, third),
    owned(lines.name, second, { username: 'no-address', password_profile_id: emails.id, meta: undefined }),
    owned(lines.link, late, { subject: 'before its user' }),
    owned(lines.link, second, { subject: 'no profile', oidc_profile_id: mintId() }),
    owned(lines.link, mintId(), { subject: 'no user' }),
    { ...lines.user, id: late },
    'no JSON',
  ];
  const path = file('more.ndjson', upserts);
  const refused = await runBoth(database, path);
  expect([refused.code, refused.counts]).toEqual([3, 'imported 0, unchanged 2, replaced 0, refused 1']);
  const { code, counts, stderr } = await runBoth(database, path, '--upsert', '--on-error', 'skip');
  expect([code, counts]).toEqual([3, 'imported 4, unchanged 3, replaced 3, refused 11']);
  expect(stderr).toContain('another record of the realm has the same issuer and subject\n');
  expect(stderr).toContain('its user-authentication-info does not exist\n');
  expect(stderr).not.toContain(ids.user);
});

test('import --dry-run finds a duplicate in another commit of the same file', async () => {
  const database = await freshDatabase();
  const { lines, all } = realmLines();
  expect((await run(file('first.ndjson', [lines.realm]), ...database.args)).code).toBe(0);
  const users = Array.from({ length: LIMITS.importCommitLines }, () => ({ ...lines.user, id: mintId() }));
  const duplicates = [{ ...lines.link, id: mintId() }, { ...lines.name, id: mintId() }, lines.user];
  const path = file('duplicates.ndjson', [...all, ...users, ...duplicates]);
  const { counts } = await runBoth(database, path, '--on-error', 'skip');
  expect(counts).toBe(`imported ${users.length + 5}, unchanged 2, replaced 0, refused 2`);
});
