import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../../src/model/version.ts';
import { runCommand } from './processes.ts';
import { copySourceTree } from './source_copy.ts';

/** A repository of this tree as it is, whose owner has set everything (docs/releasing.md), with the tag of the version. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const TAG = `v${VERSION}`;
export const REPOSITORY = 'https://git.example/owner/authrealm';

export async function createReleaseClone() {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-release-'));
  const edit = (path: string, change: (text: string) => string) =>
    writeFileSync(join(folder, path), change(readFileSync(join(folder, path), 'utf8')));
  const clone = {
    folder,
    edit,
    setOwner(values: object): void {
      edit('owner.json', (text) => `${JSON.stringify({ ...JSON.parse(text), ...values }, null, 2)}\n`);
    },
    async git(...args: readonly string[]): Promise<string> {
      const author = ['-c', 'user.name=Owner', '-c', 'user.email=owner@example.com'];
      return runToEnd(['git', '-C', folder, ...author, ...args]);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
  await copySourceTree(folder);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await clone.git('init', '--quiet');
  clone.setOwner({
    repository: REPOSITORY,
    registryName: '@owner/authrealm',
    contact: 'mailto:security@example.com',
    site: 'https://docs.example/authrealm',
  });
  for (const engine of ['sqlite', 'postgres']) {
    const frozen = join(folder, `src/sql/${engine}/migrations/0001_directory.sql`);
    cpSync(join(folder, `test/sql/schema/${engine}.sql`), frozen);
  }
  await clone.git('add', '--all');
  await clone.git('commit', '--quiet', '--message', 'Release');
  await clone.git('tag', TAG);
  return clone;
}

async function runToEnd(command: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await runCommand(command);
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr}`);
  return stdout;
}
