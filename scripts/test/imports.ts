import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './suites.ts';

/** Which files import which, to find the suites nearest to a change. */

const LOADERS = { ts: 'ts', tsx: 'tsx', js: 'js' } as const;

/** The files that import a file, by its path. Imports of types alone, and of packages, do not count. */
function importers(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const path of new Bun.Glob('{src,test,scripts,console,bench,examples}/**/*.{ts,tsx,js}').scanSync(
    ROOT,
  )) {
    if (path.includes('/node_modules/')) continue;
    const ending = path.split('.').at(-1) as keyof typeof LOADERS;
    const text = readFileSync(join(ROOT, path), 'utf8');
    for (const { path: from } of new Bun.Transpiler({ loader: LOADERS[ending] }).scanImports(text)) {
      if (!from.startsWith('.')) continue;
      const target = join(dirname(path), from);
      found.set(target, [...(found.get(target) ?? []), path]);
    }
  }
  return found;
}

/**
 * The number of imports between each file and the nearest of these, which have 0, the lowest first, and of the same number in the order of
 * these; files that import none of them are absent.
 */
export function distancesFrom(paths: readonly string[]): ReadonlyMap<string, number> {
  const importersOf = importers();
  const distances = new Map(paths.map((path) => [path, 0]));
  const queue = [...paths];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const next = (distances.get(path) ?? 0) + 1;
    for (const importer of importersOf.get(path) ?? []) {
      if (distances.has(importer)) continue;
      distances.set(importer, next);
      queue.push(importer);
    }
  }
  return distances;
}

/**
 * The paths that changed since a revision, or in the last commits, deleted ones as well, the latest first; undefined where the history
 * does not go back so far.
 */
export function changedSince(revision: string | number): readonly string[] | undefined {
  const base = typeof revision === 'number' ? `HEAD~${revision}` : revision;
  const committed = git('log', '--format=', '--name-only', `${base}..HEAD`);
  if (committed === undefined) return undefined;
  const others = [git('diff', '--name-only', 'HEAD'), git('ls-files', '--others', '--exclude-standard')];
  return [...new Set([...others, committed].join('\n').split('\n'))].filter(Boolean);
}

/** The standard output of git; undefined where it fails. */
export function git(...words: readonly string[]): string | undefined {
  const { exitCode, stdout } = Bun.spawnSync(['git', ...words], { cwd: ROOT, stderr: 'ignore' });
  return exitCode === 0 ? stdout.toString().trim() : undefined;
}
