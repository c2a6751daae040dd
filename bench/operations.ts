import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectionPaths, findPaths, ISSUER, OIDC_PROFILE, USERS_PATH } from '../test/support/population.ts';
import { type Company, loadInCompany, paceKept, type Treatment } from './background_load.ts';
import {
  inTurn,
  type Load,
  type LoadPlan,
  load,
  median,
  medianOf,
  medianRatio,
  type Turns,
  WARM_UP_SECONDS,
} from './load.ts';
import { pinned, SERVER_CORE } from './server.ts';

/** What everything beside the lookups came to. */
export interface Operations {
  /** Reverse lookups of both kinds of links. */
  readonly find: Load;
  /** One of them in lookups by ID. */
  readonly findCost: number;
  /** Milliseconds, one caller: the first page of 100 users by key, and a deep one. */
  readonly firstPageMs: number;
  readonly deepPageMs: number;
  readonly deepPage: number;
  /** Milliseconds, one caller: a page of 25 users with the exact total. */
  readonly totalledPageMs: number;
  /** Durable creates a second. */
  readonly createAlone: Load;
  readonly createTogether: Load;
  readonly bareCreatesPerSecond: number;
  /** Lookups in company. */
  readonly company: Readonly<Record<Company['kind'], Accompanied>>;
}

export interface Accompanied {
  readonly quiet: Load;
  readonly accompanied: Load;
  /** What the lookups keep of their quiet rate, and what their p99 comes to of its quiet value. */
  readonly rateKept: number;
  readonly p99Grown: number;
  /** Of every round. */
  readonly treatments: readonly Treatment[];
  /** The part of the meant pace that was kept; of searches 1. */
  readonly paceKept: number;
}

export interface OperationsPlan extends LoadPlan, Turns {
  readonly users: number;
  readonly folder: string;
}

const PATHS = 20_000;
const PAGE = 100;
const DEEP_PAGE = 10_000;
const ASKED = 200;
const TOGETHER = 64;

const LINK = JSON.stringify({
  data: {
    type: 'user_authentication_oidc_profile_info',
    subject: 'bench|{n}',
    issuer: ISSUER,
    oidc_profile_id: OIDC_PROFILE,
  },
});

const COMPANIES: readonly Company[] = [
  { kind: 'writes', perSecond: 500 },
  { kind: 'lists', perSecond: 20 },
  { kind: 'searches', callers: 64 },
];

/** Measures everything beside the lookups, on a service that is running. */
export async function measureOperations(url: string, plan: OperationsPlan): Promise<Operations> {
  const { users, folder } = plan;
  const finds = { ...plan, paths: keep(folder, 'finds', findPaths(users, Math.min(PATHS, users))) };
  const creates = {
    ...plan,
    body: LINK,
    paths: keep(folder, 'creates', collectionPaths(users, Math.min(PATHS, users))),
  };
  await load(url, { ...finds, seconds: WARM_UP_SECONDS });
  const [find = [], lookup = []] = await inTurn(plan, [() => load(url, finds), () => load(url, plan)]);
  const deepPage = Math.min(DEEP_PAGE, Math.floor(users / PAGE));
  const pages = await comparePages(url, plan, deepPage);
  const bare: number[] = [];
  const [createAlone = [], createTogether = []] = await inTurn(plan, [
    async () => {
      const alone = await load(url, { ...creates, connections: 1 });
      bare.push(await bareCreates(plan, bare.length));
      return alone;
    },
    () => load(url, { ...creates, connections: TOGETHER }),
  ]);
  return {
    find: medianOf(find),
    findCost: medianRatio(lookup, find, 'requestsPerSecond'),
    ...pages,
    deepPage,
    createAlone: medianOf(createAlone),
    createTogether: medianOf(createTogether),
    bareCreatesPerSecond: median(bare),
    company: await inCompany(url, plan),
  };
}

/** On the core the service has, while it has nothing to do; more records each time. */
async function bareCreates({ folder, users, seconds }: OperationsPlan, round: number): Promise<number> {
  const creates = seconds * BARE_CREATES_EACH_SECOND;
  const script = join(import.meta.dir, 'bare_creates.ts');
  const words = [join(folder, 'bare.db'), users, creates, FIRST_NEW + round * creates].map(String);
  const child = Bun.spawn(pinned(SERVER_CORE, [process.execPath, script, ...words]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error('the bare creates failed');
  return Number(output);
}

/** Far from the numbers that stand in the database already. */
const FIRST_NEW = 10_000_000;
const BARE_CREATES_EACH_SECOND = 1_000;

function keep(folder: string, name: string, paths: readonly string[]): string {
  const file = join(folder, name);
  writeFileSync(file, paths.join('\n'));
  return file;
}

async function inCompany(url: string, plan: OperationsPlan): Promise<Operations['company']> {
  const all: [Company['kind'], Accompanied][] = [];
  for (const company of COMPANIES) {
    const treatments: Treatment[] = [];
    const [quiet = [], accompanied = []] = await inTurn(plan, [
      () => load(url, plan),
      async () => {
        const { lookup, treatment } = await loadInCompany(url, plan, company);
        treatments.push(treatment);
        return lookup;
      },
    ]);
    all.push([
      company.kind,
      {
        quiet: medianOf(quiet),
        accompanied: medianOf(accompanied),
        rateKept: medianRatio(accompanied, quiet, 'requestsPerSecond'),
        p99Grown: medianRatio(accompanied, quiet, 'p99'),
        treatments,
        paceKept: paceKept(company, treatments),
      },
    ]);
  }
  return Object.fromEntries(all) as Operations['company'];
}

/** A lone caller asks for pages in turn; the median of each. */
async function comparePages(url: string, { token }: LoadPlan, deepPage: number) {
  const headers = { Authorization: `Bearer ${token}` };
  const ask = async (path: string): Promise<number> => {
    const start = performance.now();
    const answer = await fetch(path, { headers });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`a list was answered ${answer.status}`);
    return performance.now() - start;
  };
  const first = `${url}${USERS_PATH}?page%5Blimit%5D=${PAGE}&page%5Bafter%5D=`;
  let deep = first;
  for (let page = 1; page < deepPage; page += 1) deep = await nextOf(deep, headers);
  const times: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ASKED; round += 1) {
    times[0].push(await ask(first));
    times[1].push(await ask(deep));
  }
  for (let round = 0; round < ASKED / 10; round += 1) {
    times[2].push(await ask(`${url}${USERS_PATH}?page%5Blimit%5D=25`));
    // A total is told again for a second; then it is counted anew.
    await Bun.sleep(1_050);
  }
  const [firstPageMs, deepPageMs, totalledPageMs] = times.map(median) as [number, number, number];
  return { firstPageMs, deepPageMs, totalledPageMs };
}

async function nextOf(url: string, headers: Record<string, string>): Promise<string> {
  const answer = (await (await fetch(url, { headers })).json()) as { links: { next: string | null } };
  if (answer.links.next === null) throw new Error('the list ended early');
  return answer.links.next;
}
