import type { Opening, Way } from './session.ts';

/** What outlives a reload, and a visit to a provider: it lies in the storage of this tab, and nowhere else. */

const SESSION = 'authrealm.session';
const VISIT = 'authrealm.visit';

interface Kept {
  readonly way: Way;
  readonly opening: Opening;
}

interface KeptWithEnd extends Kept {
  /** By the clock of this machine, which is only ever held against itself. */
  readonly keptAt: number;
}

export function keep(what: Kept): void {
  const whole: KeptWithEnd = { ...what, keptAt: Date.now() };
  sessionStorage.setItem(SESSION, JSON.stringify(whole));
}

/** With the milliseconds that are left of it. */
export function kept(): (Kept & { readonly leftMs: number }) | undefined {
  const found = read<KeptWithEnd>(SESSION);
  if (!found) return undefined;
  const all = found.opening.expires_in * 1_000;
  return { ...found, leftMs: Math.min(all, all - (Date.now() - found.keptAt)) };
}

export function forget(): void {
  sessionStorage.removeItem(SESSION);
}

/** What is needed to believe a provider's answer. */
export interface Visit {
  readonly name: string;
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where the page was. */
  readonly fragment: string;
}

export function keepVisit(visit: Visit): void {
  sessionStorage.setItem(VISIT, JSON.stringify(visit));
}

/** Once: an answer that comes twice is believed by nobody. */
export function takeVisit(): Visit | undefined {
  const visit = read<Visit>(VISIT);
  sessionStorage.removeItem(VISIT);
  return visit;
}

function read<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(name);
  return text === null ? undefined : (JSON.parse(text) as T);
}
