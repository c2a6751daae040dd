import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillByImport } from '../../bench/import_rate.ts';
import { median } from '../../bench/load.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { endBrowser } from '../browser/browser.ts';
import { AUTHREALM } from '../support/processes.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { type Scrolled, scrollUsers, WATCH_FRAMES } from './console_view/scrolling.ts';
import { openBenchTarget, openDemoTarget, type ViewTarget } from './console_view/targets.ts';
import { measureViews, scriptBytes, type Views, WATCH_VIEW } from './console_view/view_times.ts';

/**
 * How fast the console shows a user of the demo and one of a million, and whether scrolling through the list stays smooth.
 * Times depend on the machine, which must be idle; the ratio of a million to the demo does not.
 */

/** p95 of the time until a user is drawn. */
const VIEW_MS_MAX = 200;
const SCRIPT_BYTES_MAX = 120 * 1024;
/** Allowed ratio of view times, a million users to the demo. */
const FACTOR_MAX = 1.5;
/** A longer gap between frames is visible. */
const GAP_MS_MAX = 100;
/** Rows that the list must reach. */
const ROWS_MIN = 1_000;
const PAGE_ROWS = LIMITS.pageRecordsMax;

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '20' },
    cold: { type: 'string', default: '5' },
    seed: { type: 'string' },
    /** An existing bench database with this number of users. */
    file: { type: 'string' },
  },
});
const users = Number(options.users);
const seed = Number(options.seed ?? freshSeed());
const plan = { rounds: Number(options.rounds), coldRounds: Number(options.cold), chance: seededRandom(seed) };
const folder = mkdtempSync(join(tmpdir(), 'authrealm-first-view-'));
const words = ['--database', `sqlite:${options.file ?? join(folder, 'view.db')}`];
const complaints: string[] = [];
const targets: ViewTarget[] = [];
try {
  if (options.file === undefined) await fillByImport(AUTHREALM, words, users);
  const demo = await openTarget(openDemoTarget(WATCH_VIEW));
  const bench = await openTarget(openBenchTarget(words, users, WATCH_VIEW + WATCH_FRAMES));
  const [small, large] = await measureViews([demo, bench], plan);
  if (!small || !large) throw new Error('nothing was measured');
  const figures = [checkViews(demo, small), checkViews(bench, large), checkFactor(small, large)];
  figures.push(checkScript(await scriptBytes(bench.window)));
  const scrolls = await scrollUsers(bench);
  figures.push(checkScrolling(scrolls));
  for (const { name, window } of targets) complaints.push(...window.errors.map((each) => `${name}: ${each}`));
  for (const complaint of complaints) console.error(complaint);
  console.log(`${figures.join('; ')}; seed ${seed}`);
} finally {
  for (const { stop } of targets) await stop();
  await endBrowser();
  rmSync(folder, { recursive: true });
}
process.exit(complaints.length === 0 ? 0 : 1);

async function openTarget(starting: Promise<ViewTarget>): Promise<ViewTarget> {
  const station = await starting;
  targets.push(station);
  return station;
}

/** Returns the text, and adds it as a complaint when the figure is out of bounds. */
function figure(words: string, holds: boolean): string {
  if (!holds) complaints.push(words);
  return words;
}

function checkViews({ name }: ViewTarget, { warm, fromOtherPage: within, cold }: Views): string {
  const figures = `a user of ${name} is shown after ${spread(warm)}, from another page after ${spread(within)}`;
  const more = cold.length === 0 ? '' : `, with nothing cached after ${spread(cold)}`;
  return figure(figures + more, p95(warm) <= VIEW_MS_MAX && p95(within) <= VIEW_MS_MAX);
}

function spread(times: readonly number[]): string {
  return `${Math.round(median(times))} ms (p95 ${Math.round(p95(times))})`;
}

function p95(times: readonly number[]): number {
  const sorted = times.toSorted((left, right) => left - right);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN;
}

function checkFactor(small: Views, large: Views): string {
  const factors = [
    median(large.warm) / median(small.warm),
    median(large.fromOtherPage) / median(small.fromOtherPage),
  ];
  const words = factors.map((factor) => factor.toFixed(2)).join(' and ');
  return figure(`${words} of the demo`, Math.max(...factors) <= FACTOR_MAX);
}

function checkScript(bytes: number): string {
  return figure(`${(bytes / 1024).toFixed(1)} KiB of script`, bytes > 0 && bytes < SCRIPT_BYTES_MAX);
}

/**
 * A busy machine delays some samples, a slow list delays all of them: the median of each way counts.
 */
function checkScrolling(all: readonly Scrolled[]): string {
  const ways = all.map(({ way, samples: goes }) => {
    const gap = median(goes.map(({ gapMs }) => gapMs));
    const most = Math.max(...goes.map(({ gapMs }) => gapMs));
    return figure(`${way} ${Math.round(gap)} ms (at most ${Math.round(most)})`, gap <= GAP_MS_MAX);
  });
  const goes = all.flatMap((each) => each.samples);
  const rows = Math.max(...goes.map((each) => each.rows));
  const pages = goes.reduce((sum, each) => sum + each.pages, 0);
  const figures = `${rows.toLocaleString('en')} rows shown in ${pages} pages`;
  const isRead = rows >= ROWS_MIN && pages >= rows / PAGE_ROWS - 1;
  return `${figure(figures, isRead)}; the widest gap between frames: ${ways.join(', ')}`;
}
