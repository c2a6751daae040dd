import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillByImport } from '../../bench/import_rate.ts';
import { median } from '../../bench/load.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { endBrowser } from '../browser/browser.ts';
import { AUTHREALM } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { type Scrolled, scrollUsers, WATCH_FRAMES } from './console_view/scrolling.ts';
import { benchStation, demoStation, type Station } from './console_view/targets.ts';
import { measureViews, scriptBytes, type Views, WATCH_VIEW } from './console_view/view_times.ts';

/**
 * How soon a browser shows a user of the demo and one of a million, and whether it keeps drawing while somebody goes through
 * the list of them. Times are of this machine and want it quiet; what the million costs over the demo is not.
 */

/** What the issue allows. */
const VIEW_MS_MAX = 200;
const SCRIPT_BYTES_MAX = 120 * 1024;
/** How much longer than on the demo a view may take at a million. */
const FACTOR_MAX = 1.5;
/** What an eye takes for a stop. */
const GAP_MS_MAX = 100;
/** Rows in the page at any time, of a window of 900 pixels. */
const DRAWN_MAX = 60;
/** How far somebody comes at least, and what a page of the list holds. */
const ROWS_MIN = 10_000;
const PAGE_ROWS = LIMITS.pageRecordsMax;

const { values: given } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '20' },
    cold: { type: 'string', default: '5' },
    seed: { type: 'string' },
    /** Of a database of so many users of the bench that is there already. */
    file: { type: 'string' },
  },
});
const users = Number(given.users);
const seed = Number(given.seed ?? freshSeed());
const plan = { rounds: Number(given.rounds), coldRounds: Number(given.cold), chance: seededRandom(seed) };
const folder = mkdtempSync(join(tmpdir(), 'authrealm-first-view-'));
const words = ['--database', `sqlite:${given.file ?? join(folder, 'view.db')}`];
const complaints: string[] = [];
const stations: Station[] = [];
try {
  if (given.file === undefined) await fillByImport(AUTHREALM, words, users);
  const demo = await stationed(demoStation(WATCH_VIEW));
  const bench = await stationed(benchStation(words, users, WATCH_VIEW + WATCH_FRAMES));
  const [small, large] = await measureViews([demo, bench], plan);
  if (!small || !large) throw new Error('nothing was measured');
  const told = [judgeViews(demo, small), judgeViews(bench, large), judgeFactor(small, large)];
  told.push(judgeScript(await scriptBytes(bench.window)));
  const scrolls = await scrollUsers(bench);
  told.push(judgeScrolls(scrolls));
  for (const { name, window } of stations)
    complaints.push(...window.errors.map((each) => `${name}: ${each}`));
  for (const complaint of complaints) console.error(complaint);
  console.log(`${told.join('; ')}; seed ${seed}`);
} finally {
  for (const { stop } of stations) await stop();
  await endBrowser();
  rmSync(folder, { recursive: true });
}
process.exit(complaints.length === 0 ? 0 : 1);

async function stationed(starting: Promise<Station>): Promise<Station> {
  const station = await starting;
  stations.push(station);
  return station;
}

/** A figure in words, with a complaint where it does not hold. */
function judged(words: string, holds: boolean): string {
  if (!holds) complaints.push(words);
  return words;
}

function judgeViews({ name }: Station, { warm, within, cold }: Views): string {
  const told = `a user of ${name} is seen after ${spread(warm)}, from another page after ${spread(within)}`;
  const more = cold.length === 0 ? '' : `, with nothing cached after ${spread(cold)}`;
  return judged(told + more, late(warm) <= VIEW_MS_MAX && late(within) <= VIEW_MS_MAX);
}

function spread(times: readonly number[]): string {
  return `${Math.round(median(times))} ms (p95 ${Math.round(late(times))})`;
}

/** Below which 95 of a hundred are. */
function late(times: readonly number[]): number {
  const sorted = times.toSorted((left, right) => left - right);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN;
}

function judgeFactor(small: Views, large: Views): string {
  const factors = [median(large.warm) / median(small.warm), median(large.within) / median(small.within)];
  const words = factors.map((factor) => factor.toFixed(2)).join(' and ');
  return judged(`${words} of the demo`, Math.max(...factors) <= FACTOR_MAX);
}

function judgeScript(bytes: number): string {
  return judged(`${(bytes / 1024).toFixed(1)} KiB of script`, bytes > 0 && bytes < SCRIPT_BYTES_MAX);
}

/**
 * A machine that does something else meanwhile is late in some goes, a list that stutters in every one: of each way the go
 * in the middle counts.
 */
function judgeScrolls(all: readonly Scrolled[]): string {
  const ways = all.map(({ way, goes }) => {
    const gap = median(goes.map(({ gapMs }) => gapMs));
    const most = Math.max(...goes.map(({ gapMs }) => gapMs));
    return judged(`${way} ${Math.round(gap)} ms (at most ${Math.round(most)})`, gap <= GAP_MS_MAX);
  });
  const goes = all.flatMap((each) => each.goes);
  const deepest = Math.max(...goes.map((each) => each.deepest));
  const drawn = Math.max(...goes.map((each) => each.drawn));
  const pages = goes.reduce((sum, each) => sum + each.pages, 0);
  const told = `${deepest.toLocaleString('en')} rows scrolled in ${pages} pages, at most ${drawn} drawn at once`;
  const isRead = deepest >= ROWS_MIN && pages >= (deepest - PAGE_ROWS * 2) / PAGE_ROWS;
  return `${judged(told, isRead && drawn <= DRAWN_MAX)}; the widest gap between frames: ${ways.join(', ')}`;
}
