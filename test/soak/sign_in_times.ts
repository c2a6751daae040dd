import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createClient } from '../../src/access/clients/clients.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { parseScopes } from '../../src/model/principal.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { atEnd, endFile } from '../support/ending.ts';
import { RUN_FOLDER } from '../support/folder.ts';
import { endServers } from '../support/postgres_server.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { type ServiceProcess, serveWithClient } from '../support/service_process.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';
import { requestToken } from '../support/token_request.ts';
import type { LoadPlan } from './load_process.ts';
import { OIDC_CALLS } from './oidc_times.ts';
import { PASSWORD_CALLS } from './password_times.ts';
import { openComparisons } from './response_times.ts';
import { SELF_SIGNUP_CALLS } from './self_signup_times.ts';
import type { PrepareCall } from './timed_call.ts';

/**
 * Whether a caller can tell from the response to a refused sign-in that somebody exists whom the caller did not prove to be. Requests about
 * known and unknown names or people are sent one at a time in random order. Bodies and headers must be the same, and the times equal
 * (test/soak/response_times.ts). The seed decides names and order.
 */
const CALLS: Readonly<Record<string, PrepareCall>> = {
  ...PASSWORD_CALLS,
  ...OIDC_CALLS,
  ...SELF_SIGNUP_CALLS,
};

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    call: { type: 'string', default: 'check' },
    /** Known names, of each kind of hash. With 1,000 the standard error of an AUC is 0.013. */
    names: { type: 'string', default: '1000' },
    /** What the service does meanwhile. */
    load: { type: 'string', multiple: true, default: ['none', 'lookups'] },
    seed: { type: 'string' },
  },
});
const prepareCall = CALLS[options.call] as PrepareCall;
if (!prepareCall) {
  console.error(`--call must be one of ${Object.keys(CALLS).join(', ')}`);
  process.exit(2);
}
const seed = Number(options.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

const LOOKUPS_PER_SECOND = 1_000;
const SCOPES = {
  signIn: 'sign-in users:read',
  signUp: 'sign-in sign-up realms:write settings:write',
};

// A run that is stopped leaves no process behind.
process.once('SIGTERM', async () => {
  await end();
  process.exit(143);
});
const comparisons = openComparisons(chance);
try {
  const database = await freshDatabase(options.engine);
  const { call, clients, userPath } = await prepare(database);
  atEnd(() => call.stop?.());
  const served = await serveWithClient(database, clients.signIn, call.flags);
  const { url, put } = served;
  const signIn = await served.token();
  const tokens = { signIn, signUp: await requestToken(url, clients.signUp) };
  const measure = await call.open({ url, put, tokens });
  for (const load of options.load) {
    const endLoad = load === 'none' ? undefined : await startLookups(served, signIn, userPath);
    await measure(load);
    endLoad?.();
  }
} finally {
  await end();
}
process.exitCode = comparisons.report(`${options.engine}, ${options.call}, seed ${seed}`) ? 0 : 1;

async function end(): Promise<void> {
  await endFile();
  await endServers();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}

/** Creates the account realm with a user, the clients, and what the call needs. */
async function prepare(database: TestDatabase) {
  const settings = database.settings();
  const db = await openDatabase(settings, systemClock);
  try {
    const { accounts: realm, member } = await createSettingsRealms(db);
    const create = async (scope: string) => {
      const scopes = parseScopes(scope) as NonNullable<ReturnType<typeof parseScopes>>;
      const rights = { scopes, realms: '*', endUserAddress: 'header' } as const;
      const { client, secret } = await createClient(db.engine.access, 'sign-in', rights, systemClock);
      return { client_id: client.clientId, client_secret: secret };
    };
    return {
      clients: { signIn: await create(SCOPES.signIn), signUp: await create(SCOPES.signUp) },
      userPath: `/v2/authentication-realms/${realm}/user-authentication-info/${member}`,
      call: await prepareCall({
        ...{ db, realm, cost: settings.passwordCost, names: Number(options.names) },
        ...{ comparisons, chance },
      }),
    };
  } finally {
    await db.engine.close();
  }
}

/** Looks up a user so many times a second in a separate process. Returns the function that ends it. */
async function startLookups({ url, get }: ServiceProcess, token: string, path: string): Promise<() => void> {
  const { status } = await get(path, token);
  if (status !== 200) throw new Error(`the lookup was answered ${status}`);
  const times = { perSecond: LOOKUPS_PER_SECOND, warmUpSeconds: 0, seconds: 86_400 };
  const plan: LoadPlan = { url, token, method: 'GET', path, ...times };
  const script = join(import.meta.dir, 'load_process.ts');
  const child = Bun.spawn([process.execPath, script, JSON.stringify(plan)]);
  atEnd(() => child.kill());
  return () => {
    if (child.exitCode !== null) comparisons.complain(`the load process exited with ${child.exitCode}`);
    child.kill();
  };
}
