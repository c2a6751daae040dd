import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectionPaths, findPaths, USERS_PATH, userAt } from '../test/support/population.ts';
import {
  type BackgroundKind,
  type BackgroundLoad,
  type BackgroundResult,
  backgroundRateRatio,
  loadWithBackground,
} from './background_load.ts';
import {
  type Load,
  type LoadPlan,
  type Loads,
  load,
  type Measurements,
  median,
  medianRatio,
  type Rounds,
  runInterleaved,
} from './load.ts';
import { LINK_BODY, LINK_REQUESTS, PERSON_BODY, personPaths, USER_BODY } from './person.ts';
import type { CreateRow, OperationRow } from './rows.ts';
import { type BenchServer, pinned, SERVER_CORE } from './server.ts';

/** The figures of all operations other than lookups by ID. */
export interface Operations {
  readonly loads: Loads<OperationRow>;
  /** Milliseconds, one caller: the first page of 100 users by key, and page number `deepPage`. */
  readonly firstPageMs: number;
  readonly deepPageMs: number;
  readonly deepPage: number;
  /** Sequential durable creates of a link without the service. */
  readonly bareCreatesPerSecond?: number;
  /** Lookups while a background load runs. A result of an earlier bench may lack some. */
  readonly background: Readonly<Partial<Record<BackgroundKind, LookupsUnderLoad>>>;
}

export interface LookupsUnderLoad {
  readonly baseline: readonly Load[];
  readonly loaded: readonly Load[];
  /** The rate and the p99 under load, divided by those without it. */
  readonly rateRatio: number;
  readonly p99Ratio: number;
  /** One for each round. */
  readonly backgroundResults: readonly BackgroundResult[];
  /** The achieved rate of the background load divided by its planned rate; 1 without one. */
  readonly backgroundRateRatio: number;
}

export interface OperationsPlan extends LoadPlan, Rounds {
  readonly users: number;
  readonly folder: string;
  readonly warmUpSeconds: number;
  /** How often each page is requested by one caller. */
  readonly pageRequests: number;
  /** A database that `fillBare` filled, to compare creates with. */
  readonly bareFile?: string;
}

const PATHS = 20_000;
const PAGE = 100;
const DEEP_PAGE = 10_000;
/** A page of the default size, without and with a total. */
const FIRST_PAGE = `${USERS_PATH}?page%5Blimit%5D=25&page%5Bafter%5D=`;
const FIRST_PAGE_WITH_TOTAL = `${USERS_PATH}?page%5Blimit%5D=25`;

const BACKGROUND_LOADS: readonly BackgroundLoad[] = [
  { kind: 'links', perSecond: 500 },
  { kind: 'passwords', callers: 80 },
  { kind: 'totals', perSecond: 20 },
  { kind: 'lists', perSecond: 20 },
  { kind: 'searches', callers: 64 },
];

/** Measures all operations other than lookups, on a running service. */
export async function measureOperations(service: BenchServer, plan: OperationsPlan): Promise<Operations> {
  const { users, folder } = plan;
  const paths = Math.min(PATHS, users);
  const withPaths = (name: string, of: readonly string[]) => ({
    ...plan,
    paths: writePaths(folder, name, of),
  });
  const reverse = withPaths('reverse_lookups', findPaths(users, paths));
  const page = { ...withPaths('page', [FIRST_PAGE]), connections: 1 };
  const pageWithTotal = { ...withPaths('page_with_total', [FIRST_PAGE_WITH_TOTAL]), connections: 1 };
  const createLink = {
    ...withPaths('links', collectionPaths(users, paths)),
    body: LINK_BODY,
    connections: 1,
  };
  const person = withPaths('persons', personPaths(users, paths, userAt));
  await load(service, { ...reverse, seconds: plan.warmUpSeconds });
  const reads = await runInterleaved(plan, {
    lookupAgain: () => load(service, plan),
    person: () => load(service, person),
    reverse: () => load(service, reverse),
    page: () => load(service, page),
    pageWithTotal: () => load(service, pageWithTotal),
  });
  const deepPage = Math.max(1, Math.min(DEEP_PAGE, Math.floor(users / PAGE)));
  const pages = await measurePages(service.url, plan, deepPage);
  const bare: number[] = [];
  const writes = await runInterleaved(plan, {
    createLink: async () => {
      const single = await load(service, createLink);
      if (plan.bareFile !== undefined) bare.push(await measureBareCreates(plan, plan.bareFile, bare.length));
      return single;
    },
    ...measureCreates(service, plan),
  });
  return {
    loads: { ...reads, ...writes },
    ...pages,
    deepPage,
    ...(bare.length === 0 ? {} : { bareCreatesPerSecond: median(bare) }),
    background: await measureUnderLoad(service, plan),
  };
}

/** Creates of a user with a link by several callers, by one request and by two. */
export function measureCreates(
  service: BenchServer,
  plan: LoadPlan & { readonly folder: string },
): Measurements<CreateRow> {
  const paths = writePaths(plan.folder, 'users', [USERS_PATH]);
  const createBy = (connections: number, bodies: Pick<LoadPlan, 'body' | 'links'>) => () =>
    load(service, { ...plan, paths, connections, ...bodies });
  const separately = { body: USER_BODY, links: LINK_REQUESTS.slice(0, 1) };
  const together = { body: PERSON_BODY };
  return {
    createSeparately16: createBy(16, separately),
    createSeparately64: createBy(64, separately),
    createTogether16: createBy(16, together),
    createTogether64: createBy(64, together),
  };
}

/** Runs on the core of the idle service; each round creates further records. */
async function measureBareCreates(
  { users, seconds }: OperationsPlan,
  bareFile: string,
  round: number,
): Promise<number> {
  const creates = seconds * BARE_CREATES_PER_SECOND;
  const script = join(import.meta.dir, 'bare_creates.ts');
  const args = [bareFile, users, creates, FIRST_NEW_USER + round * creates].map(String);
  const child = Bun.spawn(pinned(SERVER_CORE, [process.execPath, script, ...args]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error('the bare creates failed');
  return Number(output);
}

/** Above the numbers of all users in the database. */
const FIRST_NEW_USER = 10_000_000;
const BARE_CREATES_PER_SECOND = 1_000;

export function writePaths(folder: string, name: string, paths: readonly string[]): string {
  const file = join(folder, name);
  writeFileSync(file, paths.join('\n'));
  return file;
}

async function measureUnderLoad(
  service: BenchServer,
  plan: OperationsPlan,
): Promise<Operations['background']> {
  const entries: [BackgroundKind, LookupsUnderLoad][] = [];
  for (const background of BACKGROUND_LOADS) {
    const backgroundResults: BackgroundResult[] = [];
    const { baseline = [], loaded = [] } = await runInterleaved(plan, {
      baseline: () => load(service, plan),
      loaded: async () => {
        const { lookup, result } = await loadWithBackground(service, plan, background);
        backgroundResults.push(result);
        return lookup;
      },
    });
    entries.push([
      background.kind,
      {
        baseline,
        loaded,
        rateRatio: medianRatio(loaded, baseline, 'requestsPerSecond'),
        p99Ratio: medianRatio(loaded, baseline, 'p99'),
        backgroundResults,
        backgroundRateRatio: backgroundRateRatio(background, backgroundResults),
      },
    ]);
  }
  return Object.fromEntries(entries) as Operations['background'];
}

/** The median time of each page, requested in turn by one caller. */
async function measurePages(url: string, { token, pageRequests }: OperationsPlan, deepPage: number) {
  const headers = { Authorization: `Bearer ${token}` };
  const timeRequest = async (path: string): Promise<number> => {
    const start = performance.now();
    const response = await fetch(path, { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`a list returned ${response.status}`);
    return performance.now() - start;
  };
  const first = `${url}${USERS_PATH}?page%5Blimit%5D=${PAGE}&page%5Bafter%5D=`;
  let deep = first;
  for (let page = 1; page < deepPage; page += 1) deep = await nextPage(deep, headers);
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < pageRequests; round += 1) {
    times[0].push(await timeRequest(first));
    times[1].push(await timeRequest(deep));
  }
  const [firstPageMs, deepPageMs] = times.map(median) as [number, number];
  return { firstPageMs, deepPageMs };
}

async function nextPage(url: string, headers: Record<string, string>): Promise<string> {
  const response = (await (await fetch(url, { headers })).json()) as { links: { next: string | null } };
  if (response.links.next === null) throw new Error('the list ended early');
  return response.links.next;
}
