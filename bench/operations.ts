import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectionPaths, findPaths, ISSUER, OIDC_PROFILE, USERS_PATH } from '../test/support/population.ts';
import {
  type BackgroundLoad,
  type BackgroundResult,
  backgroundRateRatio,
  loadWithBackground,
} from './background_load.ts';
import {
  type Load,
  type LoadPlan,
  load,
  median,
  medianOf,
  medianRatio,
  type Rounds,
  runInterleaved,
  WARM_UP_SECONDS,
} from './load.ts';
import { pinned, SERVER_CORE } from './server.ts';

/** The figures of all operations other than lookups by ID. */
export interface Operations {
  /** Reverse lookups of both kinds of links, in turn. */
  readonly reverseLookup: Load;
  /** The rate of lookups by ID divided by the rate of reverse lookups. */
  readonly reverseLookupCost: number;
  /** Milliseconds, one caller: the first page of 100 users by key, and page number `deepPage`. */
  readonly firstPageMs: number;
  readonly deepPageMs: number;
  readonly deepPage: number;
  /** Milliseconds, one caller: a page of 25 users with the exact total. */
  readonly pageWithTotalMs: number;
  /** Durable creates. */
  readonly singleClientCreates: Load;
  readonly concurrentCreates: Load;
  readonly bareCreatesPerSecond: number;
  /** Lookups while a background load runs. */
  readonly background: Readonly<Record<BackgroundLoad['kind'], LookupsUnderLoad>>;
}

export interface LookupsUnderLoad {
  readonly baseline: Load;
  readonly loaded: Load;
  /** The rate and the p99 under load, divided by those without it. */
  readonly rateRatio: number;
  readonly p99Ratio: number;
  /** One for each round. */
  readonly backgroundResults: readonly BackgroundResult[];
  /** The achieved rate of the background load divided by its planned rate; 1 for searches. */
  readonly backgroundRateRatio: number;
}

export interface OperationsPlan extends LoadPlan, Rounds {
  readonly users: number;
  readonly folder: string;
}

const PATHS = 20_000;
const PAGE = 100;
const DEEP_PAGE = 10_000;
const PAGE_REQUESTS = 200;
const CONCURRENT_CLIENTS = 64;

const LINK = JSON.stringify({
  data: {
    type: 'user_authentication_oidc_profile_info',
    subject: 'bench|{n}',
    issuer: ISSUER,
    oidc_profile_id: OIDC_PROFILE,
  },
});

const BACKGROUND_LOADS: readonly BackgroundLoad[] = [
  { kind: 'writes', perSecond: 500 },
  { kind: 'lists', perSecond: 20 },
  { kind: 'searches', callers: 64 },
];

/** Measures all operations other than lookups, on a running service. */
export async function measureOperations(url: string, plan: OperationsPlan): Promise<Operations> {
  const { users, folder } = plan;
  const reverseLookups = {
    ...plan,
    paths: writePaths(folder, 'reverse_lookups', findPaths(users, Math.min(PATHS, users))),
  };
  const creates = {
    ...plan,
    body: LINK,
    paths: writePaths(folder, 'creates', collectionPaths(users, Math.min(PATHS, users))),
  };
  await load(url, { ...reverseLookups, seconds: WARM_UP_SECONDS });
  const [reverseLookup = [], lookup = []] = await runInterleaved(plan, [
    () => load(url, reverseLookups),
    () => load(url, plan),
  ]);
  const deepPage = Math.min(DEEP_PAGE, Math.floor(users / PAGE));
  const pages = await measurePages(url, plan, deepPage);
  const bare: number[] = [];
  const [singleClientCreates = [], concurrentCreates = []] = await runInterleaved(plan, [
    async () => {
      const single = await load(url, { ...creates, connections: 1 });
      bare.push(await measureBareCreates(plan, bare.length));
      return single;
    },
    () => load(url, { ...creates, connections: CONCURRENT_CLIENTS }),
  ]);
  return {
    reverseLookup: medianOf(reverseLookup),
    reverseLookupCost: medianRatio(lookup, reverseLookup, 'requestsPerSecond'),
    ...pages,
    deepPage,
    singleClientCreates: medianOf(singleClientCreates),
    concurrentCreates: medianOf(concurrentCreates),
    bareCreatesPerSecond: median(bare),
    background: await measureUnderLoad(url, plan),
  };
}

/** Runs on the core of the idle service; each round creates further records. */
async function measureBareCreates(
  { folder, users, seconds }: OperationsPlan,
  round: number,
): Promise<number> {
  const creates = seconds * BARE_CREATES_PER_SECOND;
  const script = join(import.meta.dir, 'bare_creates.ts');
  const args = [join(folder, 'bare.db'), users, creates, FIRST_NEW_USER + round * creates].map(String);
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

function writePaths(folder: string, name: string, paths: readonly string[]): string {
  const file = join(folder, name);
  writeFileSync(file, paths.join('\n'));
  return file;
}

async function measureUnderLoad(url: string, plan: OperationsPlan): Promise<Operations['background']> {
  const entries: [BackgroundLoad['kind'], LookupsUnderLoad][] = [];
  for (const background of BACKGROUND_LOADS) {
    const backgroundResults: BackgroundResult[] = [];
    const [baseline = [], loaded = []] = await runInterleaved(plan, [
      () => load(url, plan),
      async () => {
        const { lookup, result } = await loadWithBackground(url, plan, background);
        backgroundResults.push(result);
        return lookup;
      },
    ]);
    entries.push([
      background.kind,
      {
        baseline: medianOf(baseline),
        loaded: medianOf(loaded),
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
async function measurePages(url: string, { token }: LoadPlan, deepPage: number) {
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
  const times: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < PAGE_REQUESTS; round += 1) {
    times[0].push(await timeRequest(first));
    times[1].push(await timeRequest(deep));
  }
  for (let round = 0; round < PAGE_REQUESTS / 10; round += 1) {
    times[2].push(await timeRequest(`${url}${USERS_PATH}?page%5Blimit%5D=25`));
    // Totals are cached for a second.
    await Bun.sleep(1_050);
  }
  const [firstPageMs, deepPageMs, pageWithTotalMs] = times.map(median) as [number, number, number];
  return { firstPageMs, deepPageMs, pageWithTotalMs };
}

async function nextPage(url: string, headers: Record<string, string>): Promise<string> {
  const response = (await (await fetch(url, { headers })).json()) as { links: { next: string | null } };
  if (response.links.next === null) throw new Error('the list ended early');
  return response.links.next;
}
