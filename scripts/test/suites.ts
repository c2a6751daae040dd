import { fileURLToPath } from 'node:url';

/** The suites of `test/`: where each runs, and which command runs it. CONTRIBUTING.md, "Tests", lists both. */

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export type Engine = 'sqlite' | 'postgres' | 'citus';

/**
 * The most frequent run of a suite: `npm test`; every `.ci/run`; a share of the `.ci/run`s; those that follow a change of how a
 * release is made; `npm run nightly`.
 */
export type Tier = 'commit' | 'merge' | 'share' | 'release' | 'nightly';

export interface Suite {
  readonly path: string;
  readonly engine: Engine;
  /** Runs on SQLite, PostgreSQL and Citus, with the same tests. */
  readonly isShared: boolean;
  readonly tier: Tier;
}

/** The suites of the store's contract, which `npm test` runs on PostgreSQL as well, and `.ci/run` on Citus. */
const CONTRACT = /^test\/records\/store\./;
/** Run on PostgreSQL by every `.ci/run`: all of HTTP, and the change feed. */
const HTTP_AND_FEED = /^test\/(http\/|compat\/|deliver\/change_feed)/;
/** Run on Citus by every `.ci/run`, with the contract. */
const ROUTING = /^test\/sql\/rout\w+\.citus\./;
/** Build or install what a release consists of. */
const RELEASE = /^test\/(release\/.*\.slow\.|distro\/(deb|emulated_binaries|image)\.)/;
/** Suites that choose their engines, and include a cluster where they run on Citus. */
const COPY = /^test\/ops\/transfer\/copy\w*\.engines\./;

export function findSuites(): readonly Suite[] {
  const paths = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort();
  return paths
    .filter((path) => !/^test\/bench\/|\/node_modules\//.test(path))
    .flatMap((path) => {
      const engines = enginesOf(path);
      const isShared = engines.length > 2;
      return engines.map((engine) => ({ path, engine, isShared, tier: tierOf(path, engine) }));
    });
}

/** By the name of the file. What opens no database, or a server of its own, is run with the suites on SQLite. */
function enginesOf(path: string): readonly Engine[] {
  const kind = /\.(unit|sqlite|postgres|engines|citus)\./.exec(path)?.[1];
  if (kind === 'citus') return ['citus'];
  const isShared = kind === undefined && !['durability', 'distro'].includes(groupOf(path));
  if (isShared) return ['sqlite', 'postgres', 'citus'];
  return COPY.test(path) ? ['sqlite', 'citus'] : ['sqlite'];
}

function tierOf(path: string, engine: Engine): Tier {
  const group = groupOf(path);
  if (RELEASE.test(path)) return 'release';
  if (group === 'distro') return 'nightly';
  if (group === 'durability') return 'merge';
  if (engine === 'citus') return CONTRACT.test(path) || ROUTING.test(path) ? 'merge' : 'nightly';
  if (group === 'browser') return engine === 'sqlite' ? 'merge' : 'nightly';
  if (path.includes('.slow.')) return 'share';
  if (engine !== 'postgres' || CONTRACT.test(path)) return 'commit';
  return HTTP_AND_FEED.test(path) ? 'merge' : 'share';
}

export type Group = 'parallel' | 'serial' | 'browser' | 'durability' | 'distro';

/** Which suites may run at the same time. */
export function groupOf(path: string): Group {
  const [, folder] = /^test\/(browser|durability|distro)\//.exec(path) ?? [];
  if (folder !== undefined) return folder as Group;
  return path.includes('.serial.') ? 'serial' : 'parallel';
}
