import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths, USERS_PATH } from '../test/support/population.ts';
import { fetchToken } from './access_token.ts';
import { fillByImport } from './import_rate.ts';
import { type Load, type LoadPlan, load, median } from './load.ts';
import { markdownTable, micros, milliseconds, whole } from './markdown.ts';
import { writePaths } from './operations.ts';
import { PERSON_BODY } from './person.ts';
import { type BenchServer, startServer } from './server.ts';

/**
 * What several serving processes cost on one SQLite file: `authrealm serve --processes N`, on the cores that the load uses as
 * well; the callers of lookups have a lower priority, the creator of users has not. Prints a table of medians: `bun bench/processes.ts`.
 */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_140;
const CREATES_PER_SECOND = 200;
const SAMPLE_MS = 50;
/** Rates above any load: every request is checked and none is rejected. */
const METRICS = '--metrics 127.0.0.1:0 --client-rate 1000000/1 --address-rate 1000000/1'.split(' ');

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    processes: { type: 'string', default: '1,2,4,8,16' },
  },
});
const [seconds, users] = [Number(options.seconds), Number(options.users)];
const counts = options.processes.split(',').map(Number);
const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
const file = join(folder, 'bench.db');
const flags = ['--database', `sqlite:${file}`];
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

/** The rows of the table: a title, the figure of a round, and how it is written. */
const ROWS: readonly [string, (round: Round) => number | undefined, (value: number) => string][] = [
  ['lookups/s, 64 callers', ({ lookups }) => lookups.requestsPerSecond, whole],
  ['lookups/s of a process', ({ count, lookups }) => lookups.requestsPerSecond / count, whole],
  ['processor of a lookup, µs', ({ lookups }) => lookups.cpuMicros, micros],
  ['the same without metrics and rates, µs', ({ plain }) => plain.cpuMicros, micros],
  ['processor of the load for a lookup, µs', ({ lookups }) => lookups.loadCpuMicros, micros],
  [
    `processor of a create, ${CREATES_PER_SECOND} a second alone, µs`,
    ({ createMicros }) => createMicros,
    whole,
  ],
  ['p50 of such a create, ms', ({ alone }) => alone.p50, milliseconds],
  ['p99, ms', ({ alone }) => alone.p99, milliseconds],
  ['of them failed', ({ alone }) => alone.failed, whole],
  [`lookups/s with ${CREATES_PER_SECOND} creates/s`, ({ busy }) => busy.requestsPerSecond, whole],
  ['processor of such a lookup and its share of the creates, µs', ({ busy }) => busy.cpuMicros, micros],
  ['creates/s meanwhile', ({ creates }) => creates.perSecond, whole],
  ['p50 of such a create, ms', ({ creates }) => creates.p50, milliseconds],
  ['p99, ms', ({ creates }) => creates.p99, milliseconds],
  ['of them failed', ({ creates }) => creates.failed, whole],
  ['greatest write-ahead log, MB', ({ log }) => log.megabytes, milliseconds],
  ['most frames of it that were not in the file yet', ({ log }) => log.behind, whole],
  ['processor of the idle service, ms per second', ({ idleMs }) => idleMs, milliseconds],
];

/**
 * Creates users at a constant rate until `isEnded`, and awaits every response. Returns how many were created a second until then, how many
 * failed, and the milliseconds of each.
 */
async function createUsers(url: string, token: string, isEnded: () => boolean) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const times: number[] = [];
  const running: Promise<void>[] = [];
  const start = performance.now();
  const createOne = async (): Promise<void> => {
    const body = PERSON_BODY.replaceAll('{n}', crypto.randomUUID());
    const sent = performance.now();
    const response = await fetch(url + USERS_PATH, { method: 'POST', headers, body });
    await response.arrayBuffer();
    if (response.ok) times.push(performance.now() - sent);
  };
  while (!isEnded()) {
    const due = ((performance.now() - start) / 1_000) * CREATES_PER_SECOND;
    while (running.length < due) running.push(createOne());
    await Bun.sleep(1);
  }
  await Promise.all(running);
  const elapsed = (performance.now() - start) / 1_000;
  const p99 = times.sort((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
  const failed = running.length - times.length;
  return { count: times.length, perSecond: times.length / elapsed, failed, p50: median(times), p99 };
}

/** Samples the write-ahead log until `isEnded`: its size, and its frames that no checkpoint has written to the file. */
async function watchLog(isEnded: () => boolean) {
  let [bytes, behind] = [0, 0];
  while (!isEnded()) {
    bytes = Math.max(bytes, statSync(`${file}-wal`).size);
    // https://www.sqlite.org/walformat.html, "The WAL-Index File Format": mxFrame, and nBackfill.
    const index = readFileSync(`${file}-shm`);
    behind = Math.max(behind, index.readUInt32LE(16) - index.readUInt32LE(96));
    await Bun.sleep(SAMPLE_MS);
  }
  return { megabytes: bytes / 1e6, behind };
}

function forSeconds(): () => boolean {
  const end = performance.now() + seconds * 1_000;
  return () => performance.now() > end;
}

async function measure(service: BenchServer, plan: LoadPlan) {
  const lookups = await load(service, plan);
  const start = service.usage().cpuMicros;
  await Bun.sleep(seconds * 1_000);
  const idle = service.usage().cpuMicros - start;
  const alone = await createUsers(service.url, plan.token, forSeconds());
  const createMicros = (service.usage().cpuMicros - start - 2 * idle) / alone.count;
  const isEnded = forSeconds();
  const [busy, creates, log] = await Promise.all([
    load(service, plan),
    createUsers(service.url, plan.token, isEnded),
    watchLog(isEnded),
  ]);
  const idleMs = idle / 1_000 / seconds;
  return { lookups, alone, createMicros, busy, creates, log, idleMs };
}
type Round = Awaited<ReturnType<typeof measure>> & { readonly count: number; readonly plain: Load };

/** Runs `run` while a service of `count` processes is running. */
async function withService<T>(count: number, more: readonly string[], run: (_: BenchServer) => Promise<T>) {
  const serve = [AUTHREALM, 'serve', '--port', String(PORT), '--processes', String(count), ...flags];
  const service = await startServer([...serve, ...more], PORT, { isPinned: false });
  return run(service).finally(() => service.stop());
}

const results: Round[] = [];
await fillByImport(AUTHREALM, flags, users);
const token = await withService(1, [], ({ url }) => fetchToken(AUTHREALM, flags, url));
const paths = writePaths(folder, 'lookups', lookupPaths(users, Math.min(20_000, users * 2)));
const plan = { connections: 64, seconds, paths, token, isPinned: false, isNiced: true };
for (let round = 0; round < Number(options.rounds); round += 1)
  for (const count of round % 2 === 0 ? counts : counts.toReversed()) {
    const warm = <T>(more: readonly string[], run: (_: BenchServer, plan: LoadPlan) => Promise<T>) =>
      withService(count, more, (service) => load(service, plan).then(() => run(service, plan)));
    results.push({ ...(await warm(METRICS, measure)), count, plain: await warm([], load) });
  }
const rows = ROWS.map(([title, figureOf, format]) => {
  const figures = (count: number) =>
    results.filter((round) => round.count === count).map((round) => figureOf(round) ?? Number.NaN);
  return [title, ...counts.map((count) => format(median(figures(count))))];
});
console.log(markdownTable(['processes', ...counts.map(String)], rows));
process.exit();
