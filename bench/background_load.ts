import { join } from 'node:path';
import { type Load, type LoadPlan, load } from './load.ts';
import { type BenchServer, LOAD_CORE, pinned } from './server.ts';

/** Requests that the service handles concurrently with the measured lookups. */
export type BackgroundLoad =
  /** Creates of a link, at a fixed rate. */
  | { readonly kind: 'links'; readonly perSecond: number }
  /** Callers that create links with passwords, each without a pause between its requests: more than the queue holds. */
  | { readonly kind: 'passwords'; readonly callers: number }
  /** Pages of 25 users with the exact total of the realm, at a fixed rate. */
  | { readonly kind: 'totals'; readonly perSecond: number }
  /** The same with filters, whose totals are counted, at a fixed rate. */
  | { readonly kind: 'lists'; readonly perSecond: number }
  /** Callers that search for a part of an e-mail address, each without a pause between its requests. */
  | { readonly kind: 'searches'; readonly callers: number };

/** A background load sends one kind of request. */
export type BackgroundKind = BackgroundLoad['kind'];

/** Responses to one kind of request: 2xx, and 503 with Retry-After. */
export interface ResponseCounts {
  readonly succeeded: number;
  readonly unavailable: number;
}

/** The responses to a background load by kind, and its duration. */
export interface BackgroundResult {
  readonly seconds: number;
  readonly counts: Readonly<Record<BackgroundKind, ResponseCounts>>;
}

/** The rate of successful responses divided by the planned rate; 1 for a load without a planned rate. */
export function backgroundRateRatio(
  background: BackgroundLoad,
  results: readonly BackgroundResult[],
): number {
  if (!('perSecond' in background)) return 1;
  const sum = (value: (result: BackgroundResult) => number) =>
    results.reduce((total, result) => total + value(result), 0);
  const perSecond = sum(({ counts }) => counts[background.kind].succeeded) / sum(({ seconds }) => seconds);
  return perSecond / background.perSecond;
}

/** Measures lookups while a separate process runs the background load; both run on the core of the load. */
export async function loadWithBackground(
  server: BenchServer,
  plan: LoadPlan,
  background: BackgroundLoad,
): Promise<{ readonly lookup: Load; readonly result: BackgroundResult }> {
  const options = JSON.stringify({ url: server.url, token: plan.token, background });
  const script = join(import.meta.dir, 'background_load_process.ts');
  const child = Bun.spawn(pinned(LOAD_CORE, [process.execPath, script, options]), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const output = new Response(child.stdout).text();
  await Bun.sleep(1_000);
  const lookup = await load(server, plan);
  child.stdin.end();
  const result = JSON.parse(await output) as BackgroundResult;
  await child.exited;
  return { lookup, result };
}
