import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fetchToken } from '../../bench/access_token.ts';
import { runConcurrently } from '../../bench/callers.ts';
import { fillByImport } from '../../bench/import_rate.ts';
import {
  type Figure,
  figures,
  type Load,
  load,
  median,
  runInterleaved,
  WARM_UP_SECONDS,
} from '../../bench/load.ts';
import { LOAD_CORE, startServer } from '../../bench/server.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { freshFolder, RUN_FOLDER } from '../support/folder.ts';
import { lookupPaths } from '../support/population.ts';
import { endServers } from '../support/postgres_server.ts';
import { AUTHREALM } from '../support/processes.ts';
import { openHttpClient } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import { ACCOUNT_TOKENS } from '../support/sign_in.ts';
import { PROVIDER_FLAGS, startCodeProvider } from './code_provider.ts';
import { freshAddress, post, statusOf } from './response_times.ts';

/** Lookups concurrently with as many sign-ins as a provider may have, which wait for its token endpoint. */

/** The share of the quiet lookup rate that must remain. */
const RATIO_MIN = 0.95;
/** The exchanges of a provider that a process makes at once (`providerCodesAtOnceMax`). */
const EXCHANGES = 16;
/** Shortly before the deadline of a sign-in (`outboundMsMax`). */
const EXCHANGE_MS = 4_000;
/** How long sign-ins are sent before lookups are measured. */
const LEAD_MS = 1_000;
const PORT = 18_130;
const PERSON = { email: 'jane@example.com', subject: 'auth0|jane' };

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    users: { type: 'string', default: '10000' },
    /** By default two exchanges: as many sign-ins end in each round. */
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '7' },
  },
});
const users = Number(options.users);
const seconds = Number(options.seconds);
const isPinned = options.engine === 'sqlite';

try {
  const database = await freshDatabase(options.engine);
  await fillByImport(AUTHREALM, database.args, users);
  const provider = await openProvider(database);
  const serve = [AUTHREALM, 'serve', '--port', String(PORT), ...PROVIDER_FLAGS, ...database.args];
  const server = await startServer(serve, PORT, { isPinned });
  try {
    await measure(database, server, provider);
  } finally {
    await server.stop();
    provider.stop();
  }
} finally {
  await endServers();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}

async function openProvider(database: TestDatabase) {
  const db = await openDatabase(database.settings(), systemClock);
  try {
    const { accounts } = await createSettingsRealms(db);
    const provider = await startCodeProvider(db, accounts, EXCHANGE_MS);
    await provider.createPerson(PERSON);
    return provider;
  } finally {
    await db.engine.close();
  }
}

async function measure(
  { args }: TestDatabase,
  server: Awaited<ReturnType<typeof startServer>>,
  provider: Awaited<ReturnType<typeof openProvider>>,
): Promise<void> {
  const { url } = server;
  const token = await fetchToken(AUTHREALM, args, url, {
    scope: 'profile-infos:read sign-in realms:write',
    options: ['--end-user-address', 'header'],
  });
  await provider.allowSignIn(openHttpClient(url), token);
  const paths = join(freshFolder(), 'paths');
  writeFileSync(paths, lookupPaths(users, 2 * users).join('\n'));
  // Lookups on PostgreSQL may be refused.
  const plan = { connections: 64, seconds, paths, token, isPinned, allowsErrorStatus: !isPinned };
  // The service has a core of its own: the provider and the callers of sign-ins share that of the load.
  if (isPinned) Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)]);

  let signIns = 0;
  const waiting: number[] = [];
  async function signIn(): Promise<boolean> {
    const attempt = { isKnown: true, address: freshAddress() };
    const body = await provider.tokenCall({ sub: PERSON.subject, email: PERSON.email });
    const answer = await post({ url, token }, ACCOUNT_TOKENS, { attempt, body });
    if (statusOf(answer) !== 201) throw new Error(`a sign-in was answered ${answer.response}`);
    signIns += 1;
    return true;
  }
  async function withSignIns(): Promise<Load> {
    const stop = new AbortController();
    const running = runConcurrently(EXCHANGES, signIn, stop.signal);
    await Bun.sleep(LEAD_MS);
    waiting.push(provider.waiting());
    const measured = await load(server, plan);
    stop.abort();
    await running;
    return measured;
  }

  await load(server, { ...plan, seconds: WARM_UP_SECONDS });
  const rounds = Number(options.rounds);
  const loads = await runInterleaved(
    { rounds },
    { quiet: () => load(server, plan), withSignIns, quietAgain: () => load(server, plan) },
  );
  const quietOf = (figure: Figure) => {
    const again = figures(loads.quietAgain, figure);
    return figures(loads.quiet, figure).map((value, at) => (value + (again[at] ?? Number.NaN)) / 2);
  };
  const ratiosOf = (figure: Figure) => {
    const quiet = quietOf(figure);
    return figures(loads.withSignIns, figure).map((value, at) => value / (quiet[at] ?? Number.NaN));
  };
  const quiet = quietOf('requestsPerSecond');
  const ratios = ratiosOf('requestsPerSecond');
  // What the service uses for a lookup, the work of the sign-ins included: other programs on the machine change it less than the rate.
  const cpuRatios = ratiosOf('cpuMicros');
  for (const [at, each] of ratios.entries())
    console.log(
      `round ${at + 1}: ${Math.round(quiet[at] ?? Number.NaN)} lookups/s, with ${waiting[at]} waiting exchanges ` +
        `${each.toFixed(3)} of it, and ${cpuRatios[at]?.toFixed(3)} of the processor time for each`,
    );
  const ratio = median(ratios);
  const passed = ratio >= RATIO_MIN && waiting.every((count) => count === EXCHANGES);
  console.log(
    `${options.engine}: lookup rate concurrently with ${EXCHANGES} exchanges of ${EXCHANGE_MS / 1000} s ${ratio.toFixed(2)} ` +
      `of the quiet rate (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}), ` +
      `median ${Math.round(median(quiet))} lookups/s, processor time for each ${median(cpuRatios).toFixed(2)}, ` +
      `${signIns} sign-ins${passed ? '' : ' (!)'}`,
  );
  process.exitCode = passed ? 0 : 1;
}
