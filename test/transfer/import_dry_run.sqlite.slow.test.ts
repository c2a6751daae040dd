import { expect, test } from 'bun:test';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteAt } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import {
  bytesOf,
  changeEvents,
  type ImportSource,
  mintId,
  realmLines,
  realmRows,
} from '../support/import_fixtures.ts';
import { AUTHREALM, runAuthrealm, runCommand } from '../support/processes.ts';

/** `import --dry-run`, which imports into a copy of the database. */

const folder = freshFolder();
const file = (name: string, source: ImportSource): string => {
  const path = join(folder, name);
  writeFileSync(path, bytesOf(source));
  return path;
};
const at = (name: string) => {
  const path = join(folder, name);
  return { path, url: `sqlite:${path}`, database: sqliteAt(path) };
};
const run = (input: string, ...args: string[]) => runAuthrealm(['import', ...args], {}, input);

test('import --dry-run refuses a missing or in-memory database and creates nothing', async () => {
  const { url } = at('never.db');
  const memory = await run('', '-', '--dry-run', '--database', 'sqlite::memory:');
  expect([memory.code, memory.stderr]).toEqual([1, expect.stringContaining('in-memory database')]);
  const none = await run('', '-', '--dry-run', '--database', url);
  expect([none.code, none.stderr]).toEqual([1, expect.stringMatching(/database .* does not exist/)]);
  expect(readdirSync(folder).filter((name) => name.startsWith('never'))).toEqual([]);
});

test('import --dry-run prints the counts and refusals of an import and changes nothing', async () => {
  const { lines, all } = realmLines();
  const { url, database } = at('dry.db');
  await run('', file('dry.ndjson', all), '--database', url);
  const before = [await realmRows(database, []), await changeEvents(database)];
  const source = file('more.ndjson', [
    lines.realm,
    { ...lines.user, name: 'Renamed' },
    { ...lines.user, id: mintId() },
    { ...lines.link, id: mintId() },
    { ...lines.oidc, client_secret: 'of-the-provider' },
  ]);
  const dry = await run('', source, '--dry-run', '--upsert', '--on-error', 'skip', '--database', url);
  expect(dry).toEqual({
    code: 3,
    stdout:
      'dry run, nothing was changed; the import would have imported 1, unchanged 2, replaced 1, refused 1\n',
    stderr: 'line 4: another record of the realm has the same issuer and subject\n',
  });
  expect([await realmRows(database, []), await changeEvents(database)]).toEqual(before);
  expect(readdirSync(folder).filter((name) => name.includes('dry-run'))).toEqual([]);
});

test('import --dry-run without space for its copy fails with the reason', async () => {
  const { path, url } = at('full.db');
  const source = file('full.ndjson', realmLines().all);
  await run('', source, '--database', url);
  // The maximum file size is half of what the copy needs.
  const blocks = Math.floor(statSync(path).size / 1_024);
  const script = `ulimit -f ${blocks}; trap '' XFSZ; exec "${AUTHREALM}" import "${source}" --dry-run --database "${url}"`;
  const { code, stdout, stderr } = await runCommand(['sh', '-c', script]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^authrealm: --dry-run needs a copy of the database in the same folder/);
  expect(readdirSync(folder).filter((name) => name.includes('dry-run'))).toEqual([]);
});
