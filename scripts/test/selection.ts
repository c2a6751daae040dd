import { join } from 'node:path';
import { changedSince, distancesFrom, git } from './imports.ts';
import { type FileSeconds, MEASURED, readSeconds } from './results.ts';
import { ROOT, type Suite } from './suites.ts';

/** Which suites of the share a run of `.ci/run` takes, and which `npm run test:changed`. */

/** Of a suite that was never measured. */
const NEW_SUITE: Pick<FileSeconds, 'wall' | 'processor'> = { wall: 10, processor: 5 };
/** A machine has two cores, and three processes run suites. */
const CORES = 2;
const PROCESSES = 3;

/** At most so many runs of `.ci/run` run every suite of the share. */
const SHARES_MAX = 8;
/** Seconds of a run for its share, and for the suites next to what changed. */
const SHARE_SECONDS = 90;
const NEAR_SECONDS = 45;
const NEAR_COMMITS = 50;
/** Seconds of `npm run test:changed`. */
const CHANGED_SECONDS = 45;

const RELEASE_COMMITS = 20;
const RELEASE_FILES = /^(scripts\/(release|build_)|bin\/|deploy\/|package-lock\.json$)/;

/** The suites of `.ci/run` that `npm test` does not run. */
export function mergeSuites(all: readonly Suite[]): readonly Suite[] {
  const share = all.filter(({ tier }) => tier === 'share');
  const changed = changedSince(RELEASE_COMMITS);
  const isReleaseChanged = changed?.some((path) => RELEASE_FILES.test(path)) ?? true;
  const always = all.filter(({ tier }) => tier === 'merge' || (tier === 'release' && isReleaseChanged));
  return [...always, ...sharePart(share)];
}

/** A share by the number of commits, and the suites next to the last commits; without history, all. */
function sharePart(suites: readonly Suite[]): readonly Suite[] {
  const commits = git('rev-list', '--count', 'HEAD');
  const changed = changedSince(NEAR_COMMITS);
  if (commits === undefined || changed === undefined) return suites;
  const estimate = estimator();
  const shares = Math.min(SHARES_MAX, Math.ceil(estimate(suites) / SHARE_SECONDS));
  const part = partOf(suites, Number(commits) % shares, shares);
  const others = suites.filter((suite) => !part.includes(suite));
  return [...part, ...within(NEAR_SECONDS, nearest(others, changed))];
}

/** Parts of about the same seconds: each suite, the longest first, goes to the part that has the fewest. */
export function partOf(suites: readonly Suite[], index: number, count: number): readonly Suite[] {
  const estimate = estimator();
  const parts = Array.from({ length: count }, () => ({ seconds: 0, suites: [] as Suite[] }));
  for (const suite of suites.toSorted((left, right) => estimate([right]) - estimate([left]))) {
    const shortest = parts.reduce((least, each) => (each.seconds < least.seconds ? each : least));
    shortest.seconds += estimate([suite]);
    shortest.suites.push(suite);
  }
  return parts[index]?.suites ?? [];
}

/** The suites that changed, or that import what changed: the nearest first, then the latest change. */
export function nearest(suites: readonly Suite[], changed: readonly string[]): readonly Suite[] {
  const distances = distancesFrom(changed);
  const places = new Map([...distances.keys()].map((path, place) => [path, place]));
  // test/ mirrors src/: of suites at the same distance, those of the same module come first.
  const modules = new Set(changed.map(moduleOf));
  const rankOf = ({ path }: Suite) => 2 * (distances.get(path) ?? 0) + (modules.has(moduleOf(path)) ? 0 : 1);
  const placeOf = ({ path }: Suite) => places.get(path) ?? 0;
  return suites
    .filter(({ path }) => distances.has(path))
    .sort((left, right) => rankOf(left) - rankOf(right) || placeOf(left) - placeOf(right));
}

/** The first suites, without those for which the seconds do not suffice. */
function within(seconds: number, suites: readonly Suite[]): readonly Suite[] {
  const estimate = estimator();
  const taken: Suite[] = [];
  for (const suite of suites) if (estimate([...taken, suite]) <= seconds) taken.push(suite);
  return taken;
}

function moduleOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** The suites next to what changed since a revision, and how many others of `npm test` import it. */
export function changedSuites(
  all: readonly Suite[],
  revision: string,
): { readonly suites: readonly Suite[]; readonly leftOut: number } {
  const changed = changedSince(revision);
  if (changed === undefined) throw new Error(`git knows no revision ${revision}`);
  const near = nearest(
    all.filter(({ tier, path }) => tier === 'commit' || changed.includes(path)),
    changed,
  );
  const suites = within(CHANGED_SECONDS, near);
  return { suites, leftOut: near.filter((each) => each.tier === 'commit' && !suites.includes(each)).length };
}

/** The seconds that suites take together. */
function estimator(): (suites: readonly Suite[]) => number {
  const rows = new Map(
    readSeconds(join(ROOT, MEASURED)).map((row) => [`${row.path} ${row.engine}`, row] as const),
  );
  return (suites) => {
    const each = suites.map(({ path, engine }) => rows.get(`${path} ${engine}`) ?? NEW_SUITE);
    const sum = (name: 'wall' | 'processor') => each.reduce((total, row) => total + row[name], 0);
    return Math.max(sum('wall') / PROCESSES, sum('processor') / CORES);
  };
}
