import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../src/model/version.ts';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';
import { createReleaseClone, TAG } from '../support/release_clone.ts';

/** `npm run release` in a scratch clone (docs/releasing.md). */

const clone = await createReleaseClone();

afterAll(() => clone.remove());

const release = (...args: readonly string[]) =>
  runCommand([process.execPath, join(clone.folder, 'scripts/release/release.ts'), ...args]);

const FROZEN = 'src/sql/sqlite/migrations/0001_directory.sql';

const OWNER_REFUSALS = [
  ['repository', '', 'a URL such as https://HOST/OWNER/authrealm'],
  ['repository', 'https://HOST/OWNER/authrealm', 'a URL such as https://HOST/OWNER/authrealm'],
  ['registryName', '', 'a name such as authrealm or @OWNER/authrealm'],
  ['contact', 'security@example.com', 'an address such as mailto:security@HOST'],
  ['site', '', 'a URL such as https://HOST/authrealm'],
] as const;

describe('npm run release refuses', () => {
  const REFUSALS: readonly [string, () => unknown, string][] = [
    [
      'a file that is not committed',
      () => writeFileSync(join(clone.folder, 'left.txt'), ''),
      'the working tree has changes: commit or remove what "git status" lists',
    ],
    [
      'a commit without a tag',
      () => clone.git('tag', '--delete', TAG),
      `this commit has no tag: run "git tag ${TAG}"`,
    ],
    [
      'a tag of another version',
      async () => [await clone.git('tag', '--delete', TAG), await clone.git('tag', 'v99.0.0')],
      `the tag of this commit is v99.0.0, and the version in package.json is ${VERSION}`,
    ],
    ...OWNER_REFUSALS.map(([name, value, expected]): [string, () => unknown, string] => [
      `the ${name} "${value}"`,
      () => commitAndTag(() => clone.setOwner({ [name]: value })),
      `owner.json has no ${name}: write ${expected}`,
    ]),
    [
      'a version that the changelog does not describe',
      () =>
        commitAndTag(() =>
          clone.edit('CHANGELOG.md', (text) => text.replaceAll(`## ${VERSION}`, '## Unreleased')),
        ),
      `CHANGELOG.md has no section "## ${VERSION}": describe the release there`,
    ],
    [
      'a schema that is not frozen',
      () => commitAndTag(() => rmSync(join(clone.folder, FROZEN))),
      `${FROZEN} is missing: copy test/sql/schema/sqlite.sql there, and commit it`,
    ],
    [
      'packages that are not those of the lock file',
      () =>
        commitAndTag(() =>
          clone.edit('package-lock.json', (text) =>
            text.replace(/("node_modules\/jose": \{\s+"version": ")/, '$19'),
          ),
        ),
      'node_modules differs from package-lock.json: run "npm ci"',
    ],
  ];

  async function commitAndTag(change: () => void): Promise<void> {
    change();
    await clone.git('commit', '--quiet', '--all', '--message', 'Change');
    await clone.git('tag', '--force', TAG);
  }

  test.each(REFUSALS)('npm run release refuses %s in one sentence', async (_, change, sentence) => {
    const start = (await clone.git('rev-parse', 'HEAD')).trim();
    await change();
    const { stdout, stderr, code } = await release();
    await clone.git('reset', '--quiet', '--hard', start);
    await clone.git('clean', '--quiet', '--force');
    await clone.git('tag', '--force', TAG);
    expect({ stdout, stderr, code }).toEqual({ stdout: '', stderr: `release: ${sentence}\n`, code: 1 });
    expect(existsSync(join(clone.folder, 'dist'))).toBe(false);
  });
});

test.each(['README.md', 'docs/index.md'])('%s installs files of this version', (page) => {
  const named = [...readFileSync(join(clone.folder, page), 'utf8').matchAll(/authrealm[-_](\d+\.\d+\.\d+)/g)];
  expect(new Set(named.map(([, version]) => version))).toEqual(new Set([VERSION]));
});

test('npm run release ends with one sentence where the script of an artefact fails', async () => {
  const programs = freshFolder();
  symlinkSync(Bun.which('git') ?? '', join(programs, 'git'));
  const command = [process.execPath, join(clone.folder, 'scripts/release/release.ts'), 'npm_package'];
  const { stdout, stderr, code } = await runCommand(command, { PATH: programs });
  expect([stdout, code]).toEqual(['', 1]);
  expect(stderr.trim().split('\n')).toEqual([
    'release: builds npm_package',
    'npm_package.ts: Executable not found in $PATH: "npm"',
    expect.stringMatching(/^release: ".*npm_package\.ts.*" exited with code 1$/),
  ]);
});

test('a release refuses a package without a license text', async () => {
  clone.edit('package-lock.json', (text) =>
    text.replace('"packages": {', '"packages": { "node_modules/.bin": { "version": "1.0.0" },'),
  );
  const script = join(clone.folder, 'scripts/release/licenses.ts');
  const { stdout, stderr, code } = await runCommand([process.execPath, script, freshFolder()]);
  await clone.git('checkout', '--quiet', 'package-lock.json');
  expect({ stdout, stderr, code }).toEqual({
    stdout: '',
    stderr: 'licenses.ts: node_modules/.bin has no license text: a release must not contain it\n',
    code: 1,
  });
});

test('npm run release rejects an artefact that it does not know, and knows those that pages name', async () => {
  const { stderr, code } = await release('snap');
  const [, known = ''] = /^release: no artefact snap; known are (.+)\n$/.exec(stderr) ?? [];
  expect([code, known]).toEqual([2, expect.stringContaining('npm_package, ')]);
  const read = (page: string) => readFileSync(join(clone.folder, page), 'utf8');
  expect(read('docs/releasing.md').replaceAll('`', '').replaceAll(/\s+/g, ' ')).toContain(known);
  const pages = ['README.md', 'docs/index.md', 'deploy/README.md', 'docs/releasing.md'];
  for (const page of pages) {
    const named = [...read(page).matchAll(/npm run release -- (\w+)/g)].map(([, name]) => name);
    expect(known.split(', ')).toEqual(expect.arrayContaining(named));
    expect(named).not.toEqual([]);
  }
});
