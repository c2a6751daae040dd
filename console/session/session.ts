import { type Observable, observable } from '../observable.ts';

/** What the console may do, and for how long. */
interface Session {
  readonly token: string;
  readonly way: Way;
  readonly scopes: ReadonlySet<string>;
  /** `*` for all realms. */
  readonly realms: '*' | readonly string[];
  /** Who is signed in, in the words of the way that was taken. */
  readonly label: string;
  /** By the clock that begins with the page, and never goes back. */
  readonly endsAt: number;
}

type Way = 'link' | 'provider' | 'client_credentials';

export interface SessionState {
  readonly open: Session | undefined;
  /** Whose it is, or was when it expired: what it began stays for them, and for nobody else. */
  readonly person: string | undefined;
  /** Why there is none, or none in the place of this one, in words. */
  readonly why: string | undefined;
  /** Opens one with what was brought here and could not be asked for; undefined where nothing was. */
  readonly again?: (() => void) | undefined;
}

/** What a service answers that opens a session. */
export interface Opening {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly scope: string;
  readonly realms: '*' | readonly string[];
  readonly label: string;
  /** The name in the log; a token of a client does not tell it. */
  readonly actor?: string;
}

export const session = observable<SessionState>({ open: undefined, person: undefined, why: undefined });

let alarm: ReturnType<typeof setTimeout> | undefined;

/** The way of client credentials is kept in memory alone; the others outlive a reload of the page. */
export function openSession(way: Way, opening: Opening): void {
  if (way !== 'client_credentials') keep({ way, opening });
  begin(way, opening, opening.expires_in * 1_000);
}

/** Takes up what a page before this one has kept. */
export function resumeSession(): void {
  const found = kept();
  if (!found) return;
  if (found.leftMs > 0) begin(found.way, found.opening, found.leftMs);
  else endSession('Your session has expired.');
}

/** Whoever was signed in may come back, and what could be tried again still can. */
export function endSession(why: string | undefined): void {
  const { person, again } = session.get();
  end({ open: undefined, person, why, again });
}

/** Ends it for good: nothing stays of what it began. */
export function leaveSession(why: string): void {
  end({ open: undefined, person: undefined, why });
}

function end(state: SessionState): void {
  clearTimeout(alarm);
  forget();
  session.set(state);
}

/** Tells what hinders the opening of one, or nothing any more; one that is open goes on. */
export function tellHindrance(why?: string, again?: () => void): void {
  session.set({ ...session.get(), why, again });
}

/** The service has refused this scope: what needs it is not offered any more. */
export function loseScope(scope: string): void {
  const state = session.get();
  const { open } = state;
  if (!open?.scopes.has(scope)) return;
  session.set({
    ...state,
    open: { ...open, scopes: new Set([...open.scopes].filter((each) => each !== scope)) },
  });
}

function begin(way: Way, opening: Opening, leftMs: number): void {
  clearTimeout(alarm);
  alarm = setTimeout(() => endSession('Your session has expired.'), leftMs);
  const { access_token: token, scope, realms, label, actor = label } = opening;
  const endsAt = performance.now() + leftMs;
  session.set({
    open: { token, way, scopes: new Set(scope.split(' ')), realms, label, endsAt },
    person: `${way} ${actor}`,
    why: undefined,
  });
}

/** Whether the session that is open has this scope. */
export function may({ open }: SessionState, scope: string): boolean {
  return open?.scopes.has(scope) ?? false;
}

/** What outlives a reload, and a visit to a provider: it lies in the storage of this tab, and nowhere else. */

const SESSION_KEY = 'authrealm.session';
const SIGN_IN_KEY = 'authrealm.visit';

interface Kept {
  readonly way: Way;
  readonly opening: Opening;
}

interface KeptWithEnd extends Kept {
  /** By the clock of this machine, which is only ever held against itself. */
  readonly keptAt: number;
}

function keep(what: Kept): void {
  const whole: KeptWithEnd = { ...what, keptAt: Date.now() };
  sessionStorage.setItem(SESSION_KEY, JSON.stringify(whole));
}

/** With the milliseconds that are left of it. */
function kept(): (Kept & { readonly leftMs: number }) | undefined {
  const found = readItem<KeptWithEnd>(SESSION_KEY);
  if (!found) return undefined;
  const all = found.opening.expires_in * 1_000;
  return { ...found, leftMs: Math.min(all, all - (Date.now() - found.keptAt)) };
}

function forget(): void {
  sessionStorage.removeItem(SESSION_KEY);
}

/** What is needed to believe a provider's answer. */
interface Visit {
  readonly name: string;
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where the page was. */
  readonly fragment: string;
}

export function keepVisit(visit: Visit): void {
  sessionStorage.setItem(SIGN_IN_KEY, JSON.stringify(visit));
}

/** Once: an answer that comes twice is believed by nobody. */
export function takeVisit(): Visit | undefined {
  const visit = readItem<Visit>(SIGN_IN_KEY);
  sessionStorage.removeItem(SIGN_IN_KEY);
  return visit;
}

function readItem<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(name);
  return text === null ? undefined : (JSON.parse(text) as T);
}

/**
 * Work that outlives a page, and a session that expired. It belongs to whoever began it: it is cancelled, and nothing is
 * left of it, where they sign out or somebody else signs in.
 */
export function belonging<T extends { cancel(): void }>(): Observable<T | undefined> {
  const work = observable<T | undefined>(undefined);
  let { person } = session.get();
  session.follow((state) => {
    if (state.person === person) return;
    person = state.person;
    work.get()?.cancel();
    work.set(undefined);
  });
  return work;
}
