import { Database } from 'bun:sqlite';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SQL } from 'bun';
import { type PostgresServer, startServer as startPostgres } from '../../test/support/postgres_server.ts';
import { resourcesOf } from '../../test/support/process_tree.ts';
import { type LoadPlan, load, type Measurements, runInterleaved } from '../load.ts';
import { writePaths } from '../operations.ts';
import { hashedUserAt } from '../postgres_population.ts';
import { usageOf } from '../process_usage.ts';
import { type BenchServer, startServer } from '../server.ts';
import { authrealm, baseline } from './authrealm.ts';
import { betterAuth } from './better_auth.ts';
import { keycloak } from './keycloak.ts';
import { kratos } from './kratos.ts';
import { type Peer, type PeerContext, type PeerWorkload, Unavailable } from './peer.ts';
import { installBetterAuth, installKeycloak, installKratos } from './programs.ts';
import { type PeerResult, type PeerRow, reportPeers } from './report.ts';
import { supabaseAuth } from './supabase_auth.ts';

/**
 * Measures other directories of users and authrealm in turn, in the same rounds and on the same users: `npm run bench:peers`.
 * A peer is installed by the client of its registry, or given as a program; one that cannot be had is reported in a sentence.
 */
const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    /** Seconds of load before the first round, in place of each peer's own. */
    'warm-up': { type: 'string' },
    /** Where peers are installed, for this run and the next ones. */
    programs: { type: 'string', default: join(tmpdir(), 'authrealm-peers') },
    /** The program of Supabase Auth. */
    'supabase-auth': { type: 'string' },
    /** Another checkout of this repository, from before a user is created with its links, with its own dependencies. */
    baseline: { type: 'string' },
    only: { type: 'string', multiple: true },
    out: { type: 'string', default: join(import.meta.dir, '../results') },
  },
});
const users = Number(options.users);
const plan = { rounds: Number(options.rounds), seconds: Number(options.seconds) };
const PORT = 18_110;
const OWN_PORT = 18_120;
const READERS = 64;
const WRITERS = 16;
const MANY_WRITERS = 64;

/** The peers by the name that `--only` takes. */
const PEERS: Readonly<Record<string, () => Promise<Peer>>> = {
  'kratos-sqlite': async () => kratos(await installKratos(options.programs), 'sqlite'),
  'better-auth': async () => betterAuth(await installBetterAuth(options.programs)),
  'kratos-postgres': async () => kratos(await installKratos(options.programs), 'postgres'),
  'supabase-auth': async () => {
    const program = options['supabase-auth'];
    if (program !== undefined) return supabaseAuth(program);
    throw new Unavailable(
      'Supabase Auth is no Go module that can be installed by its name: pass its program with --supabase-auth.',
    );
  },
  keycloak: async () => keycloak(await installKeycloak(options.programs)),
  ...(options.baseline !== undefined && baselines(options.baseline)),
};

function baselines(checkout: string): Readonly<Record<string, () => Promise<Peer>>> {
  return {
    'baseline-sqlite': () => baseline(checkout, 'sqlite'),
    'baseline-postgres': () => baseline(checkout, 'postgres'),
  };
}

/** A filled server, and the requests that it is measured by. */
interface Target {
  readonly peer: Peer;
  readonly server: BenchServer;
  readonly workload: PeerWorkload;
  readonly folder: string;
}

async function startTarget(peer: Peer, context: PeerContext): Promise<Target> {
  const { folder, port } = context;
  mkdirSync(folder, { recursive: true });
  const { command, environment, startSecondsMax = 30 } = await peer.prepare(context);
  const start = () => startServer(command, port, { environment, cwd: folder, startSecondsMax });
  const filling = await start();
  await peer.fill(context);
  await filling.stop();
  await analyze(peer, context.database);
  const server = await start();
  return { peer, server, workload: await peer.workload(context), folder };
}

/** Collects the statistics that the planner uses. Connections read them when they open, so no process is running. */
async function analyze({ engine }: Peer, database: string): Promise<void> {
  if (engine === 'sqlite') {
    const db = new Database(database);
    db.run('analyze');
    db.close();
    return;
  }
  const sql = new SQL(database, { max: 1 });
  await sql.unsafe('vacuum analyze').simple();
  await sql.close();
}

/** What is measured of a server. A plan for all of them overrides that of each. */
function measurementsOf(
  { peer, server, workload, folder }: Target,
  every: Partial<LoadPlan> = {},
): Measurements<PeerRow> {
  const { token, reads, reverse, create } = workload;
  const database = peer.engine === 'postgres' && postgres ? { database: databaseUsage(postgres) } : {};
  const measure = (name: string, paths: readonly string[] | undefined, more: Partial<LoadPlan>) => {
    if (paths === undefined) return {};
    const file = writePaths(folder, name, paths);
    const common = { seconds: plan.seconds, token, paths: file, ...database };
    const each = { ...common, connections: WRITERS, ...more, ...every };
    return { [name]: () => load(server, each) };
  };
  const { path = '', ...bodies } = create ?? {};
  return {
    ...measure('reads', reads, { connections: READERS }),
    ...measure('reverse', reverse, {}),
    ...measure('creates16', create && [path], bodies),
    ...measure('creates64', create && [path], { ...bodies, connections: MANY_WRITERS }),
  };
}

/** The size of one answer to a read; undefined where there are no reads. */
async function answerBytes({ server, workload }: Target): Promise<number | undefined> {
  const path = workload.reads?.[0];
  if (path === undefined) return undefined;
  const headers = { Authorization: `Bearer ${workload.token}` };
  const response = await fetch(server.url + path, { headers });
  const { length } = await response.text();
  if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
  return length;
}

const OWN = 'own:';

/** Measures a peer and authrealm, started next to each other, and stops both. */
async function compare(peer: Peer, contexts: readonly [PeerContext, PeerContext]): Promise<PeerResult> {
  const targets: Target[] = [];
  try {
    targets.push(await startTarget(peer, contexts[0]));
    targets.push(await startTarget(authrealm(peer.engine, peer.ownLinks), contexts[1]));
    const [theirs, ours] = targets as [Target, Target];
    const own = measurementsOf(ours);
    const other = measurementsOf(theirs);
    // The two loads of a row follow each other: their ratio is of the same seconds.
    const pairs = (Object.keys(own) as PeerRow[]).flatMap((row) => [
      [row, other[row]],
      [OWN + row, own[row]],
    ]);
    const measurements = Object.fromEntries(
      pairs.filter(([, run]) => run !== undefined),
    ) as Measurements<string>;
    await warmUp([theirs, ours]);
    const loads = Object.entries(await runInterleaved({ rounds: plan.rounds }, measurements));
    const rowsOf = (isOwn: boolean) =>
      Object.fromEntries(
        loads
          .filter(([row]) => row.startsWith(OWN) === isOwn)
          .map(([row, each]) => [row.replace(OWN, ''), each]),
      );
    const describe = async (target: Target, isOwn: boolean) => ({
      loads: rowsOf(isOwn),
      residentMb: resourcesOf(target.server.pid).residentMb,
      startMs: target.server.startMs,
      answerBytes: await answerBytes(target),
    });
    const { name, engine, answers, creates } = peer;
    return {
      name,
      engine,
      ...(creates !== undefined && { creates }),
      ...(answers !== undefined && { answers }),
      peer: await describe(theirs, false),
      authrealm: await describe(ours, true),
    };
  } finally {
    for (const { server } of targets) await server.stop();
  }
}

/** Runs every kind of request, by a few callers: a cold process answers the first ones slowly. */
async function warmUp(targets: readonly Target[]): Promise<void> {
  for (const target of targets) {
    const seconds = Number(options['warm-up'] ?? target.peer.warmUpSeconds);
    const rows = Object.values(measurementsOf(target, { connections: 4, seconds: Math.ceil(seconds / 3) }));
    for (const measure of rows) await measure();
  }
}

/** Why a peer is not in the tables. An error is logged as well, and the run fails at its end. */
function sentenceOf(name: string, error: unknown): string {
  if (error instanceof Unavailable) return error.message;
  console.error(error);
  process.exitCode = 1;
  return `${name} could not be measured: ${(error as Error).message}.`;
}

/** Started for the first peer that needs it. */
let postgres: PostgresServer | undefined;

const databaseUsage = ({ pid }: PostgresServer) => ({ usage: () => usageOf(pid) });

async function run(): Promise<void> {
  const results: PeerResult[] = [];
  const missing: string[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-peers-run-'));
  try {
    for (const name of options.only ?? Object.keys(PEERS)) {
      const create = PEERS[name];
      if (!create) throw new Error(`unknown peer ${name}: choose from ${Object.keys(PEERS).join(', ')}`);
      try {
        const peer = await create();
        if (peer.engine === 'postgres')
          postgres ??= await startPostgres({ max_connections: '400', max_wal_size: '1GB' });
        const databaseOf = async (owner: string): Promise<string> =>
          peer.engine === 'postgres'
            ? ((await postgres?.freshDatabase()) ?? '')
            : join(folder, name, owner, 'users.db');
        const contextOf = async (owner: string, port: number): Promise<PeerContext> => ({
          folder: join(folder, name, owner),
          port,
          database: await databaseOf(owner),
          users,
          userOf: hashedUserAt,
        });
        results.push(
          await compare(peer, [await contextOf('peer', PORT), await contextOf('authrealm', OWN_PORT)]),
        );
      } catch (error) {
        missing.push(sentenceOf(name, error));
      }
    }
  } finally {
    await postgres?.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  }
  mkdirSync(options.out, { recursive: true });
  const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length };
  const at = new Date(Date.now()).toISOString();
  console.log(reportPeers({ at, machine, users, ...plan, results, missing }, options.out));
}

await run();
process.exit();
