import { join } from 'node:path';
import { type Load, type LoadPlan, load } from './load.ts';
import { LOAD_CORE, pinned } from './server.ts';

/** What else the service is asked while it answers lookups. */
export type Company =
  /** So many creates a second, and more passwords to hash than may wait. */
  | { readonly kind: 'writes'; readonly perSecond: number }
  /** Lists with exact totals, so many a second. */
  | { readonly kind: 'lists'; readonly perSecond: number }
  /** So many callers that search for a part of an e-mail address, again as soon as they are answered. */
  | { readonly kind: 'searches'; readonly callers: number };

/** How often one kind of work was answered with success, and how often that it must come again. */
export interface Count {
  readonly done: number;
  readonly deferred: number;
}

/** How the company was treated, each kind of work by itself, and for how long. */
export interface Treatment {
  readonly seconds: number;
  readonly counts: Readonly<Record<Work, Count>>;
}

export type Work = 'links' | 'passwords' | 'lists' | 'searches';

/** How much of the pace that was meant was kept, and answered with success; 1 where there was none to keep. */
export function paceKept(company: Company, treatments: readonly Treatment[]): number {
  if (company.kind === 'searches') return 1;
  const work: Work = company.kind === 'writes' ? 'links' : 'lists';
  return perSecond(treatments, work).done / company.perSecond;
}

/** How often a second one kind of work was answered so, over all rounds. */
export function perSecond(treatments: readonly Treatment[], work: Work): Count {
  const sum = (of: (each: Treatment) => number) => treatments.reduce((total, each) => total + of(each), 0);
  const seconds = sum((each) => each.seconds);
  return {
    done: sum(({ counts }) => counts[work].done) / seconds,
    deferred: sum(({ counts }) => counts[work].deferred) / seconds,
  };
}

/** Measures lookups while the service has company, from the core the service does not have. */
export async function loadInCompany(
  url: string,
  plan: LoadPlan,
  company: Company,
): Promise<{ readonly lookup: Load; readonly treatment: Treatment }> {
  const asked = JSON.stringify({ url, token: plan.token, company });
  const script = join(import.meta.dir, 'background_load_process.ts');
  const child = Bun.spawn(pinned(LOAD_CORE, [process.execPath, script, asked]), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const output = new Response(child.stdout).text();
  await Bun.sleep(1_000);
  const lookup = await load(url, plan);
  child.stdin.end();
  const treatment = JSON.parse(await output) as Treatment;
  await child.exited;
  return { lookup, treatment };
}
