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

/** What the load of a round goes on for, and when in it the engine may die and come back. */
const LOAD_MS = 1_500;
const LIFE_MS = 900;
const DEATH_MS = 500;

const { values: given } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, seed: { type: 'string' } },
});
const rounds = Number(given.rounds);
const seed = Number(given.seed ?? freshSeed());
const chance = seededRandom(seed);
console.log(`seed ${seed}`);

/** What rounds came to. */
interface Seen {
  acknowledged: number;
  /** Answers that the write may have landed. */
  unknown: number;
  slowestMs: number;
  recoveryMs: number;
  readonly complaints: string[];
}

function nothing(): Seen {
  return { acknowledged: 0, unknown: 0, slowestMs: 0, recoveryMs: 0, complaints: [] };
}

/** Loads the service while the engine dies and comes back. Then every write is there once, and nothing else is. */
async function round(seen: Seen, troubled: FaultyService, dieAndReturn: () => Promise<void>, found?: string) {
  const [known, before] = [troubled.service.log.length, troubled.acknowledged.size];
  const loading = troubled.runLoad(LOAD_MS);
  await Bun.sleep(chance() * LIFE_MS);
  await dieAndReturn();
  const recoveryMs = await troubled.measureRecovery();
  const heard = await loading;
  const users = await troubled.users(found);
  const news = troubled.service.log.slice(known);
  seen.acknowledged += troubled.acknowledged.size - before;
  seen.unknown += news.filter((said) => said.event === 'fault' && said.code === 'unknown_outcome').length;
  seen.slowestMs = Math.max(seen.slowestMs, ...heard.map(({ ms }) => ms));
  seen.recoveryMs = Math.max(seen.recoveryMs, recoveryMs);
  for (const id of troubled.acknowledged) if (!users.has(id)) seen.complaints.push(`${id} is lost`);
  for (const id of users) if (!troubled.acknowledged.has(id)) seen.complaints.push(`${id} was done twice`);
}

async function kills(): Promise<Seen> {
  const seen = nothing();
  const server = await startServer();
  const troubled = await startFaultyService(await databaseThrough(server, [server.port]));
  for (let number = 1; number <= rounds; number += 1) {
    await round(seen, troubled, async () => {
      await server.kill();
      await Bun.sleep(chance() * DEATH_MS);
      await server.start();
    });
    const disagreements = await troubled.service.database.findInconsistencies();
    seen.complaints.push(...disagreements.map((says) => `round ${number}: ${says}`));
  }
  await troubled.stop();
  return seen;
}

/** The primary dies, and the standby that has received every acknowledged write takes its place. */
async function failover(): Promise<Seen> {
  const seen = nothing();
  const pair = await startStandbyPair();
  const database = await databaseThrough(pair.primary, [pair.primary.port, pair.standbyPort]);
  const troubled = await startFaultyService(database);
  await round(
    seen,
    troubled,
    async () => {
      await pair.primary.kill();
      await Bun.sleep(chance() * DEATH_MS);
      await pair.promote();
    },
    urlThrough(new URL(database.direct).pathname, [pair.standbyPort]),
  );
  await troubled.stop();
  await pair.stop();
  return seen;
}

function toldOf({ acknowledged, unknown, slowestMs, recoveryMs, complaints }: Seen): string {
  return (
    `${acknowledged} writes (${unknown} asked again because nobody knew), slowest answer ${Math.round(slowestMs)} ms, ` +
    `slowest recovery ${Math.round(recoveryMs)} ms, ${complaints.length} complaints`
  );
}

try {
  const killed = await kills();
  const failed = await failover();
  const complaints = [...killed.complaints, ...failed.complaints];
  for (const complaint of complaints) console.log(complaint);
  console.log(`kill -9 ${rounds}: ${toldOf(killed)}; failover: ${toldOf(failed)}, seed ${seed}`);
  process.exitCode = complaints.length === 0 ? 0 : 1;
} finally {
  await endServers();
}
