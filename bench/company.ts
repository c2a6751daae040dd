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

/** What was promised must have been asked and answered: else the lookups had less company than the figure says. */
const KEPT = 0.95;

function assertKept(company: Company, { seconds, counts }: Treatment): void {
  if (company.kind === 'searches') return;
  const { done } = counts[company.kind === 'writes' ? 'links' : 'lists'];
  if (done < company.perSecond * seconds * KEPT) {
    throw new Error(`${company.kind}: ${done} in ${seconds.toFixed(1)} s, not ${company.perSecond} a second`);
  }
}

/** Measures lookups while the service has company, from the core the service does not have. */
export async function loadInCompany(
  url: string,
  plan: LoadPlan,
  company: Company,
): Promise<{ readonly lookup: Load; readonly treatment: Treatment }> {
  const asked = JSON.stringify({ url, token: plan.token, company });
  const script = join(import.meta.dir, 'company_caller.ts');
  const child = Bun.spawn(pinned(LOAD_CORE, [process.execPath, script, asked]), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const output = new Response(child.stdout).text();
  await Bun.sleep(1_000);
  const lookup = await load(url, plan);
  child.stdin.end();
  const treatment = JSON.parse(await output) as Treatment;
  await child.exited;
  assertKept(company, treatment);
  return { lookup, treatment };
}
