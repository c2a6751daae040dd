import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths, populationLines } from '../test/support/population.ts';
import { fetchToken } from './access_token.ts';
import { runAtRate, runConcurrently } from './callers.ts';
import { openEngineDatabase } from './engine_database.ts';
import { importLines } from './import_rate.ts';
import { type Load, type LoadPlan, load, runInterleaved, WARM_UP_SECONDS, withUsage } from './load.ts';
import { writePaths } from './operations.ts';
import {
  type CheckedHash,
  type CheckSender,
  type CheckTimes,
  checkedLines,
  fillQueue,
  makeCheckedProfiles,
  openCheckSender,
} from './password_checks.ts';
import { type BenchServer, startServer } from './server.ts';
import { meetsBars, type SignInRow, type SignInRun, signInMarkdown } from './sign_in_report.ts';

/** Password checks alone, and lookups concurrently with them. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_120;
const LOOKUP_PATHS = 20_000;
const RIGHTS = {
  scope: 'profile-infos:read users:read sign-in',
  options: ['--end-user-address', 'header'],
};
/** Enough that the worker never waits for the next check. */
const CHECK_CALLERS = 4;
/** How long checks are sent before lookups are measured. */
const LEAD_MS = 1_000;

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    users: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '5' },
    /** One short round at 1,000 users: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = options.quick ? 1_000 : Number(options.users);
const rounds = options.quick ? 1 : Number(options.rounds);
const seconds = options.quick ? 1 : Number(options.seconds);
const isPinned = options.engine === 'sqlite';

interface Setup {
  readonly service: BenchServer;
  readonly plan: LoadPlan;
  readonly senders: Readonly<Record<CheckedHash, CheckSender>>;
}

/** Measures checks alone, from one response to another, so that the processor time is that of whole checks. */
async function measureChecks(service: BenchServer, checks: CheckSender, callers: number): Promise<Load> {
  const stop = new AbortController();
  const running = runConcurrently(callers, checks.sendWrong, stop.signal);
  // The first check may wait for the worker to start.
  await checks.nextAnswer();
  const from = await checks.nextAnswer();
  const measured = await withUsage({ server: service }, async () => {
    await Bun.sleep(seconds * 1_000);
    const to = await checks.nextAnswer();
    const { perSecond, p50, p99 } = checks.times(from, to);
    return { requests: (perSecond * (to - from)) / 1_000, requestsPerSecond: perSecond, p50, p99 };
  });
  stop.abort();
  await running;
  return measured;
}

/** Measures while checks are sent. */
async function measureWithChecks(
  checks: CheckSender,
  send: (stop: AbortSignal) => Promise<void>,
  measure: () => Promise<Load | undefined>,
): Promise<{ readonly load: Load; readonly checks: CheckTimes }> {
  const stop = new AbortController();
  const running = send(stop.signal);
  await Bun.sleep(LEAD_MS);
  const from = performance.now();
  const measured = await measure();
  const to = performance.now();
  stop.abort();
  await running;
  const times = checks.times(from, to);
  const { perSecond: requestsPerSecond, p50, p99 } = times;
  return { load: measured ?? { requestsPerSecond, p50, p99 }, checks: times };
}

/** The pause of each connection between two lookups with which all together reach a rate. */
async function pauseFor(service: BenchServer, plan: LoadPlan, perSecond: number): Promise<number> {
  const cycleMs = (rate: number) => (plan.connections / rate) * 1_000;
  let pauseMs = cycleMs(perSecond);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { requestsPerSecond } = await load(service, { ...plan, seconds: 1, pauseMs });
    pauseMs = Math.max(0, pauseMs + cycleMs(perSecond) - cycleMs(requestsPerSecond));
  }
  return pauseMs;
}

async function measureRounds({
  service,
  plan,
  senders,
}: Setup): Promise<Pick<SignInRun, 'loads' | 'checks'>> {
  const { own } = senders;
  const quietRate = (await load(service, { ...plan, seconds: options.quick ? 1 : WARM_UP_SECONDS }))
    .requestsPerSecond;
  await own.registerDevices();
  for (const checks of Object.values(senders)) await checks.sendWrong();
  const halfChecks = (await measureChecks(service, own, CHECK_CALLERS)).requestsPerSecond / 2;
  const half = { ...plan, pauseMs: await pauseFor(service, plan, quietRate / 2) };

  const checks: Partial<Record<SignInRow, CheckTimes[]>> = {};
  type Send = (stop: AbortSignal) => Promise<void>;
  const withChecks = (row: SignInRow, send: Send, measure: () => Promise<Load | undefined>) => async () => {
    const measured = await measureWithChecks(own, send, measure);
    checks[row] = [...(checks[row] ?? []), measured.checks];
    return measured.load;
  };
  const full: Send = (stop) => fillQueue(own, stop);
  const atHalf: Send = (stop) => runAtRate(halfChecks, own.sendWrong, stop);
  const loads = await runInterleaved<SignInRow>(
    { rounds },
    {
      own: () => measureChecks(service, own, CHECK_CALLERS),
      ownAlone: () => measureChecks(service, own, 1),
      bcrypt10: () => measureChecks(service, senders.bcrypt10, CHECK_CALLERS),
      bcrypt12: () => measureChecks(service, senders.bcrypt12, CHECK_CALLERS),
      quiet: () => load(service, plan),
      fullQueue: withChecks('fullQueue', full, () => load(service, plan)),
      quietAgain: () => load(service, plan),
      half: () => load(service, half),
      halfFullQueue: withChecks('halfFullQueue', full, () => load(service, half)),
      halfHalfChecks: withChecks('halfHalfChecks', atHalf, () => load(service, half)),
      halfChecks: withChecks('halfChecks', atHalf, async () => {
        await Bun.sleep(seconds * 1_000);
        return undefined;
      }),
    },
  );
  return { loads, checks };
}

async function measure(flags: readonly string[], folder: string): Promise<SignInRun> {
  const profiles = makeCheckedProfiles();
  const lines = [...populationLines(users), ...checkedLines(profiles)];
  await importLines(AUTHREALM, flags, lines, lines.length);
  const serve = [AUTHREALM, 'serve', '--port', String(PORT), ...flags];
  const service = await startServer(serve, PORT, { isPinned });
  const token = await fetchToken(AUTHREALM, flags, service.url, RIGHTS);
  const paths = writePaths(folder, 'lookups', lookupPaths(users, Math.min(LOOKUP_PATHS, users * 2)));
  const sender = (profile: string) => openCheckSender({ url: service.url, token, profile });
  const measured = await measureRounds({
    service,
    // Lookups on PostgreSQL may be refused.
    plan: { connections: 64, seconds, paths, token, isPinned, allowsErrorStatus: true },
    senders: {
      own: sender(profiles.own),
      bcrypt10: sender(profiles.bcrypt10),
      bcrypt12: sender(profiles.bcrypt12),
    },
  });
  await service.stop();
  return {
    at: new Date(Date.now()).toISOString(),
    machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
    ...{ engine: options.engine, users, rounds, seconds },
    ...measured,
  };
}

async function run(): Promise<SignInRun> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  const { flags, stop } = await openEngineDatabase(options.engine, folder);
  try {
    return await measure(flags, folder);
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const result = await run();
mkdirSync(options.out, { recursive: true });
writeFileSync(join(options.out, `sign-in-${result.engine}.json`), `${JSON.stringify(result, null, 1)}\n`);
console.log(signInMarkdown(result));
process.exit(options.quick || meetsBars(result) ? 0 : 1);
