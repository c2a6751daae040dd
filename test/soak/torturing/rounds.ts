import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../support/json_schema.ts';
import { operationsOf } from '../../support/openapi_client.ts';
import { seededRandom } from '../../support/random.ts';
import { type Draw, drawOf } from '../fuzz/draw.ts';
import { openFuzzResponseCheck } from '../fuzz/response_check.ts';
import { type Asked, complaintsOf } from '../ledger.ts';
import { operatorOf } from '../operator.ts';
import { openSender, type Sender } from '../random_client.ts';
import { clientOf, settleCommons, strangers, tokenOf } from '../random_service.ts';
import { openPlayer, type Player } from '../random_writes.ts';
import type { Mortal } from '../restartable_service.ts';
import { FAULTS, type Fault } from './faults.ts';
import type { Scene } from './scene.ts';

export interface Torture {
  readonly seed: number;
  readonly rounds: number;
  /** Of each round at least. */
  readonly operations: number;
  readonly clients: number;
  /** Hears of each round. */
  readonly tell?: (told: Told) => void;
}

/** What a round came to. */
export interface Told {
  readonly round: number;
  readonly faults: readonly string[];
  readonly operations: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  /** In sentences. */
  readonly complaints: readonly string[];
  readonly seconds: number;
}

/** So many operations a second are asked for in all: enough to meet every fault, few enough to look at each. */
const OPERATIONS_PER_SECOND = 400;
/** A realm with more records than this is left for another one. */
const REALM_RECORDS_MAX = 250;
/** How often a second thing goes wrong in one round. */
const TWO_FAULTS = 0.35;

/** Clients write and read at random while things go wrong; after each round everything has to agree. */
export async function torture(
  scene: Scene,
  { seed, rounds, operations, clients, tell }: Torture,
): Promise<readonly Told[]> {
  const chance = seededRandom(seed);
  const draw = drawOf(chance);
  const company = await gather(scene, clients, chance);
  const faults = FAULTS.filter((fault) => fault.fits(scene));
  const told: Told[] = [];
  let queue: Fault[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    // Each in its turn, in an order of chance.
    if (queue.length === 0) queue = shuffled(faults, draw);
    const chosen = [queue.pop() as Fault, ...(draw.happens(TWO_FAULTS) ? [draw.one(faults)] : [])];
    const one = await playRound(scene, company, { round, faults: [...new Set(chosen)], operations, draw });
    told.push(one);
    tell?.(one);
  }
  return told;
}

function shuffled<T>(of: readonly T[], draw: Draw): T[] {
  return of
    .map((each) => [draw.share(), each] as const)
    .sort(([one], [other]) => one - other)
    .map(([, each]) => each);
}

/** Who plays, and what is heard. */
interface Company {
  readonly players: readonly Player[];
  readonly senders: readonly Sender[];
  /** What was complained of since it was last asked. */
  complaints: string[];
  /** Another program that answers as well. */
  beside: Mortal | undefined;
  logRead: number;
}

async function gather(scene: Scene, clients: number, chance: () => number): Promise<Company> {
  const { database, service } = scene;
  const company: Company = { players: [], senders: [], complaints: [], beside: undefined, logRead: 0 };
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as JsonObject;
  const { isDocumented } = openFuzzResponseCheck(document, operationsOf(document));
  const complain = (what: string) => void company.complaints.push(what);
  const senders: Sender[] = [];
  for (let client = 0; client < clients; client += 1) {
    const secret = await clientOf(database);
    let token = '';
    senders.push(
      openSender({
        name: `client${client}`,
        service: () => (company.beside && chance() < 0.5 ? company.beside : service),
        async token(isRefused) {
          if (token === '' || isRefused) token = await grantedBy(service, secret);
          return token;
        },
        hear(method, path, status, text) {
          if (status === 500 || !isDocumented(method, path, status))
            complain(`${method} ${path} was answered ${status} ${text}`);
        },
      }),
    );
  }
  const commons = await settleCommons(senders[0] as Sender);
  const operator = operatorOf(database);
  const players = await Promise.all(
    senders.map((sender) => openPlayer({ chance, commons, complain, sender, operator })),
  );
  return Object.assign(company, { senders, players });
}

const GRANT_MS_MAX = 300_000;

async function grantedBy(service: Mortal, secret: Parameters<typeof tokenOf>[1]): Promise<string> {
  const deadline = performance.now() + GRANT_MS_MAX;
  for (;;) {
    await service.up();
    const token = await tokenOf(service, secret).catch(() => undefined);
    if (token !== undefined) return token;
    if (performance.now() > deadline) throw new Error('no token is granted any more');
    await Bun.sleep(20);
  }
}

interface Round {
  readonly round: number;
  readonly faults: readonly Fault[];
  readonly operations: number;
  readonly draw: Draw;
}

async function playRound(
  scene: Scene,
  company: Company,
  { round, faults, operations, draw }: Round,
): Promise<Told> {
  const start = performance.now();
  const { players, senders } = company;
  const before = senders.map(({ ledger }) => ledger.length);
  const pauseMs = (1_000 * players.length) / OPERATIONS_PER_SECOND;
  let played = 0;
  let isStruck = false;
  const playing = players.map(async (player) => {
    while (!isStruck || played < operations) {
      played += 1;
      await player.play();
      await Bun.sleep(draw.share() * 2 * pauseMs);
    }
  });
  const striking = strikeAll(scene, company, faults, draw).finally(() => {
    isStruck = true;
  });
  await Promise.all([striking, ...playing]);
  await scene.service.up();
  await lookAfter(scene, company);
  const asked = senders.flatMap(({ ledger }, index) => ledger.slice(before[index]));
  const count = (outcome: Asked['outcome']) => asked.filter((each) => each.outcome === outcome).length;
  const { complaints } = company;
  company.complaints = [];
  return {
    round,
    faults: faults.map(({ name }) => name),
    operations: played,
    acknowledged: count('done'),
    refused: count('refused'),
    unknown: count('unknown'),
    complaints,
    seconds: (performance.now() - start) / 1_000,
  };
}

async function strikeAll(
  scene: Scene,
  company: Company,
  faults: readonly Fault[],
  draw: Draw,
): Promise<void> {
  await Promise.all(
    faults.map(async (fault) => {
      await Bun.sleep(100 + draw.below(600));
      await fault.strike(scene, draw, (program) => {
        company.beside = program;
      });
    }),
  );
}

/** Everything has to agree: models, records, changes, what was answered, and what the service wrote of itself. */
async function lookAfter({ database, logFile }: Scene, company: Company): Promise<void> {
  const { players, senders } = company;
  await Promise.all(players.map((player) => player.verify()));
  for (const player of players) company.complaints.push(...(await strangers(database, player)));
  const ledger = senders.flatMap((sender) => sender.ledger);
  company.complaints.push(...(await complaintsOf(database, ledger)), ...bugsIn(logFile, company));
  for (const player of players) if (player.ids().length > REALM_RECORDS_MAX) await player.move();
}

/** What the service wrote since it was last read that tells of a bug of its own. */
function bugsIn(logFile: string, company: Company): readonly string[] {
  const text = readFileSync(logFile, 'utf8');
  const news = text.slice(company.logRead);
  company.logRead = text.length;
  const lines = news.split('\n').filter((line) => line.includes('"code":"internal"') || /^\s+at /.test(line));
  return lines.slice(0, 5).map((line) => `the service wrote: ${line.slice(0, 1_000)}`);
}
