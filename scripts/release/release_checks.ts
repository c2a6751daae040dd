import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './build.ts';
import { checkOwner, type Manifest, type Owner } from './owner.ts';
import { hasLockedPackages } from './package_lock.ts';

/** What must be true before a release is built, each with the sentence that says what to do otherwise. */

/** Returns the sentences of all checks that failed. */
export async function findObstacles(manifest: Manifest, owner: Owner): Promise<readonly string[]> {
  const changes = await run(['git', 'status', '--porcelain']);
  const isClean = changes === '';
  return [
    ...(isClean ? [] : ['the working tree has changes: commit or remove what "git status" lists']),
    ...checkTag(manifest, (await run(['git', 'tag', '--points-at', 'HEAD'])).split('\n').filter(Boolean)),
    ...checkOwner(owner),
    ...checkChangelog(manifest),
    ...checkSchemas(),
    ...checkInstalledPackages(),
  ];
}

function checkTag({ version }: Manifest, tags: readonly string[]): readonly string[] {
  const expected = `v${version}`;
  if (tags.includes(expected)) return [];
  if (tags.length === 0) return [`this commit has no tag: run "git tag ${expected}"`];
  return [`the tag of this commit is ${tags.join(', ')}, and the version in package.json is ${version}`];
}

function checkChangelog({ version }: Manifest): readonly string[] {
  if (releaseNotes(version) !== undefined) return [];
  return [`CHANGELOG.md has no section "## ${version}": describe the release there`];
}

/** Later releases migrate databases with this schema: its text may not follow the descriptions of tables any more. */
function checkSchemas(): readonly string[] {
  return ['sqlite', 'postgres'].flatMap((engine) => {
    const path = `src/sql/${engine}/migrations/0001_directory.sql`;
    const text = `test/sql/schema/${engine}.sql`;
    return existsSync(join(ROOT, path)) ? [] : [`${path} is missing: copy ${text} there, and commit it`];
  });
}

/** The artefacts are built from node_modules, and the provenance names the lock file. */
function checkInstalledPackages(): readonly string[] {
  return hasLockedPackages('') ? [] : ['node_modules differs from package-lock.json: run "npm ci"'];
}

/** The section of CHANGELOG.md about a version, without its heading; undefined where it is missing or empty. */
export function releaseNotes(version: string): string | undefined {
  const sections = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  const section = sections.find((each) => each.startsWith(`${version}\n`) || each.startsWith(`${version} `));
  return section?.slice(section.indexOf('\n')).trim() || undefined;
}
