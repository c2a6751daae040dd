import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../support/json_schema.ts';
import { operationsOf } from '../../support/openapi_client.ts';
import { seededRandom, shuffled } from '../../support/random.ts';
import { type ClientSecret, requestToken } from '../../support/token_request.ts';
import { openCommandLine } from '../command_line.ts';
import { type Draw, drawOf } from '../fuzz/draw.ts';
import { openFuzzResponseCheck } from '../fuzz/response_check.ts';
import { openRandomClient, type RandomClient } from '../random_client.ts';
import { createClient, createSharedRecords, modelMismatches } from '../random_service.ts';
import { openRandomWriter, type RandomWriter } from '../random_writes.ts';
import type { RestartableService } from '../restartable_service.ts';
import { findInconsistencies, type WriteAttempt } from '../write_history.ts';
import type { TortureEnvironment } from './environment.ts';
import { FAULTS, type Fault } from './faults.ts';

export interface Torture {
  readonly seed: number;
  readonly rounds: number;
  /** At least, in each round. */
  readonly operations: number;
  readonly clients: number;
  readonly onRound?: (reports: RoundReport) => void;
}

export interface RoundReport {
  readonly round: number;
  readonly faults: readonly string[];
  readonly operations: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly complaints: readonly string[];
  readonly seconds: number;
}

/** The total rate: high enough for requests to be in flight during every fault, low enough to check each. */
const OPERATIONS_PER_SECOND = 400;
/** A writer replaces its realm when it has more records. */
const REALM_RECORDS_MAX = 250;
/** Share of rounds with a second fault. */
const SECOND_FAULT_SHARE = 0.35;

/** Clients write and read at random while faults are injected; after each round everything must be consistent. */
export async function torture(
  environment: TortureEnvironment,
  { seed, rounds, operations, clients, onRound }: Torture,
): Promise<readonly RoundReport[]> {
  const chance = seededRandom(seed);
  const draw = drawOf(chance);
  const state = await createWriters(environment, clients, chance);
  const faults = FAULTS.filter((fault) => fault.fits(environment));
  const reports: RoundReport[] = [];
  let queue: Fault[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    // Every fault in turn, in random order.
    if (queue.length === 0) queue = shuffled(faults, chance);
    const chosen = [queue.pop() as Fault, ...(draw.happens(SECOND_FAULT_SHARE) ? [draw.one(faults)] : [])];
    const one = await runRound(environment, state, { round, faults: [...new Set(chosen)], operations, draw });
    reports.push(one);
    onRound?.(one);
  }
  return reports;
}

interface TortureState {
  readonly writers: readonly RandomWriter[];
  readonly randomClients: readonly RandomClient[];
  /** Complaints of the current round. */
  complaints: string[];
  logRead: number;
}

async function createWriters(
  environment: TortureEnvironment,
  clients: number,
  chance: () => number,
): Promise<TortureState> {
  const { database, service } = environment;
  const state: TortureState = {
    writers: [],
    randomClients: [],
    complaints: [],
    logRead: 0,
  };
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as JsonObject;
  const { isDocumented } = openFuzzResponseCheck(document, operationsOf(document));
  const complain = (what: string) => void state.complaints.push(what);
  const randomClients: RandomClient[] = [];
  for (let client = 0; client < clients; client += 1) {
    const secret = await createClient(database);
    let token = '';
    randomClients.push(
      openRandomClient({
        name: `client${client}`,
        service: () => service,
        async token(isRefused) {
          if (token === '' || isRefused) token = await requestTokenUntilGranted(service, secret);
          return token;
        },
        onResponse(method, path, status, text) {
          if (status === 500 || !isDocumented(method, path, status))
            complain(`${method} ${path} returned ${status} ${text}`);
        },
      }),
    );
  }
  const sharedRecords = await createSharedRecords(randomClients[0] as RandomClient);
  const commandLine = openCommandLine(database);
  const writers = await Promise.all(
    randomClients.map((client) => openRandomWriter({ chance, sharedRecords, complain, client, commandLine })),
  );
  return Object.assign(state, { randomClients, writers });
}

const TOKEN_MS_MAX = 300_000;

async function requestTokenUntilGranted(service: RestartableService, secret: ClientSecret): Promise<string> {
  const deadline = performance.now() + TOKEN_MS_MAX;
  for (;;) {
    await service.waitUntilReady();
    const token = await requestToken(service.url, secret).catch(() => undefined);
    if (token !== undefined) return token;
    if (performance.now() > deadline) throw new Error('no token was granted in time');
    await Bun.sleep(20);
  }
}

interface Round {
  readonly round: number;
  readonly faults: readonly Fault[];
  readonly operations: number;
  readonly draw: Draw;
}

async function runRound(
  environment: TortureEnvironment,
  state: TortureState,
  { round, faults, operations, draw }: Round,
): Promise<RoundReport> {
  const start = performance.now();
  const { writers, randomClients } = state;
  const before = randomClients.map(({ history }) => history.length);
  const pauseMs = (1_000 * writers.length) / OPERATIONS_PER_SECOND;
  let sent = 0;
  let areFaultsOver = false;
  const writing = writers.map(async (writer) => {
    while (!areFaultsOver || sent < operations) {
      sent += 1;
      await writer.writeOnce();
      await Bun.sleep(draw.share() * 2 * pauseMs);
    }
  });
  const injecting = injectAll(environment, faults, draw).finally(() => {
    areFaultsOver = true;
  });
  await Promise.all([injecting, ...writing]);
  await environment.service.waitUntilReady();
  await checkConsistency(environment, state);
  const attempts = randomClients.flatMap(({ history }, index) => history.slice(before[index]));
  const count = (outcome: WriteAttempt['outcome']) =>
    attempts.filter((each) => each.outcome === outcome).length;
  const { complaints } = state;
  state.complaints = [];
  return {
    round,
    faults: faults.map(({ name }) => name),
    operations: sent,
    acknowledged: count('acknowledged'),
    refused: count('rejected'),
    unknown: count('unknown'),
    complaints,
    seconds: (performance.now() - start) / 1_000,
  };
}

async function injectAll(
  environment: TortureEnvironment,
  faults: readonly Fault[],
  draw: Draw,
): Promise<void> {
  await Promise.all(
    faults.map(async (fault) => {
      await Bun.sleep(100 + draw.below(600));
      await fault.inject(environment, draw);
    }),
  );
}

/** Models, records, changes and responses must agree, and the service must have logged no internal error. */
async function checkConsistency(
  { database, logFile }: TortureEnvironment,
  state: TortureState,
): Promise<void> {
  const { writers, randomClients } = state;
  await Promise.all(writers.map((writer) => writer.verify()));
  for (const writer of writers) state.complaints.push(...(await modelMismatches(database, writer)));
  const history = randomClients.flatMap((client) => client.history);
  const found = await findInconsistencies(database, history);
  // The service writes to the log of the installation meanwhile, and a statement on a cluster has no snapshot of all nodes: only what
  // a second read finds as well is stored.
  const again = found.length === 0 ? found : await findInconsistencies(database, history);
  state.complaints.push(...found.filter((each) => again.includes(each)), ...loggedErrors(logFile, state));
  for (const writer of writers) if (writer.ids().length > REALM_RECORDS_MAX) await writer.replaceRealm();
}

/** Internal errors that the service logged since the last call. */
function loggedErrors(logFile: string, state: TortureState): readonly string[] {
  const text = readFileSync(logFile, 'utf8');
  const newText = text.slice(state.logRead);
  state.logRead = text.length;
  const lines = newText
    .split('\n')
    .filter((line) => line.includes('"code":"internal"') || /^\s+at /.test(line));
  return lines.slice(0, 5).map((line) => `the service logged: ${line.slice(0, 1_000)}`);
}
