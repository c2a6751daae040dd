import { parseArgs } from 'node:util';
import {
  databaseThrough,
  type FaultyService,
  startFaultyService,
  urlThrough,
} from '../support/fault_injection.ts';
import { endServers, startServer } from '../support/postgres_server.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { startStandbyPair } from '../support/standby.ts';

/** Duration of the load of a round, and bounds of when PostgreSQL is killed and for how long it is down. */
const LOAD_MS = 1_500;
const KILL_AFTER_MS_MAX = 900;
const DOWN_MS_MAX = 500;

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, seed: { type: 'string' } },
});
const rounds = Number(options.rounds);
const seed = Number(options.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

interface KillReport {
  acknowledged: number;
  /** Responses 503 unknown_outcome: the write may have been committed. */
  unknown: number;
  slowestMs: number;
  recoveryMs: number;
  readonly complaints: string[];
}

function emptyReport(): KillReport {
  return { acknowledged: 0, unknown: 0, slowestMs: 0, recoveryMs: 0, complaints: [] };
}

/** Loads the service while PostgreSQL is killed and restarted. Then every acknowledged write must exist exactly once. */
async function round(
  report: KillReport,
  service: FaultyService,
  restartEngine: () => Promise<void>,
  found?: string,
) {
  const [logStart, before] = [service.service.log.length, service.acknowledged.size];
  const loading = service.runLoad(LOAD_MS);
  await Bun.sleep(chance() * KILL_AFTER_MS_MAX);
  await restartEngine();
  const recoveryMs = await service.measureRecovery();
  const responses = await loading;
  const users = await service.users(found);
  const newEntries = service.service.log.slice(logStart);
  report.acknowledged += service.acknowledged.size - before;
  for (const entry of newEntries) {
    if (entry.event === 'fault' && entry.code === 'unknown_outcome') report.unknown += entry.count ?? 0;
  }
  report.slowestMs = Math.max(report.slowestMs, ...responses.map(({ ms }) => ms));
  report.recoveryMs = Math.max(report.recoveryMs, recoveryMs);
  for (const id of service.acknowledged) if (!users.has(id)) report.complaints.push(`${id} is missing`);
  for (const id of users)
    if (!service.acknowledged.has(id)) report.complaints.push(`${id} was created without an acknowledgement`);
}

async function kills(): Promise<KillReport> {
  const report = emptyReport();
  const server = await startServer();
  const service = await startFaultyService(await databaseThrough(server, [server.port]));
  for (let number = 1; number <= rounds; number += 1) {
    await round(report, service, async () => {
      await server.kill();
      await Bun.sleep(chance() * DOWN_MS_MAX);
      await server.start();
    });
    const disagreements = await service.service.database.findInconsistencies();
    report.complaints.push(...disagreements.map((says) => `round ${number}: ${says}`));
  }
  await service.stop();
  return report;
}

/** Kills the primary and promotes the synchronous standby, which has every acknowledged write. */
async function failover(): Promise<KillReport> {
  const report = emptyReport();
  const pair = await startStandbyPair();
  const database = await databaseThrough(pair.primary, [pair.primary.port, pair.standbyPort]);
  const service = await startFaultyService(database);
  await round(
    report,
    service,
    async () => {
      await pair.primary.kill();
      await Bun.sleep(chance() * DOWN_MS_MAX);
      await pair.promote();
    },
    urlThrough(new URL(database.direct).pathname, [pair.standbyPort]),
  );
  await service.stop();
  await pair.stop();
  return report;
}

function summaryOf({ acknowledged, unknown, slowestMs, recoveryMs, complaints }: KillReport): string {
  return (
    `${acknowledged} writes (${unknown} retried after an unknown outcome), slowest answer ${Math.round(slowestMs)} ms, ` +
    `slowest recovery ${Math.round(recoveryMs)} ms, ${complaints.length} complaints`
  );
}

try {
  const killed = await kills();
  const failed = await failover();
  const complaints = [...killed.complaints, ...failed.complaints];
  for (const complaint of complaints) console.log(complaint);
  console.log(`kill -9 ${rounds}: ${summaryOf(killed)}; failover: ${summaryOf(failed)}, seed ${seed}`);
  process.exitCode = complaints.length === 0 ? 0 : 1;
} finally {
  await endServers();
}
