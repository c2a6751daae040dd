import { type Observable, observable } from '../observable.ts';

/** What the console may do, and for how long. */
interface Session {
  readonly token: string;
  readonly method: SignInMethod;
  readonly scopes: ReadonlySet<string>;
  /** `*` for all realms. */
  readonly realms: '*' | readonly string[];
  /** Who is signed in, in the words of the way that was taken. */
  readonly label: string;
  /** By the clock that begins with the page, and never goes back. */
  readonly endsAt: number;
}

type SignInMethod = 'link' | 'provider' | 'client_credentials';

export interface SessionState {
  readonly open: Session | undefined;
  /** Whose it is, or was when it expired: what it began stays for them, and for nobody else. */
  readonly owner: string | undefined;
  /** Why there is none, or none in the place of this one, in words. */
  readonly message: string | undefined;
  /** Opens one with what was brought here and could not be asked for; undefined where nothing was. */
  readonly retry?: (() => void) | undefined;
}

/** What a service answers that opens a session. */
export interface SessionGrant {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly scope: string;
  readonly realms: '*' | readonly string[];
  readonly label: string;
  /** The name in the log; a token of a client does not tell it. */
  readonly actor?: string;
}

export const session = observable<SessionState>({ open: undefined, owner: undefined, message: undefined });

let alarm: ReturnType<typeof setTimeout> | undefined;

/** The way of client credentials is kept in memory alone; the others outlive a reload of the page. */
export function openSession(method: SignInMethod, grant: SessionGrant): void {
  if (method !== 'client_credentials') saveSession({ method, grant });
  startSession(method, grant, grant.expires_in * 1_000);
}

/** Takes up what a page before this one has kept. */
export function resumeSession(): void {
  const found = loadSession();
  if (!found) return;
  if (found.leftMs > 0) startSession(found.method, found.grant, found.leftMs);
  else endSession('Your session has expired.');
}

/** Whoever was signed in may come back, and what could be tried again still can. */
export function endSession(message: string | undefined): void {
  const { owner, retry } = session.get();
  end({ open: undefined, owner, message, retry });
}

/** Ends it for good: nothing stays of what it began. */
export function closeSession(message: string): void {
  end({ open: undefined, owner: undefined, message });
}

function end(state: SessionState): void {
  clearTimeout(alarm);
  clearSession();
  session.set(state);
}

/** Tells what hinders the opening of one, or nothing any more; one that is open goes on. */
export function setSignInError(message?: string, retry?: () => void): void {
  session.set({ ...session.get(), message, retry });
}

/** The service has refused this scope: what needs it is not offered any more. */
export function dropScope(scope: string): void {
  const state = session.get();
  const { open } = state;
  if (!open?.scopes.has(scope)) return;
  session.set({
    ...state,
    open: { ...open, scopes: new Set([...open.scopes].filter((each) => each !== scope)) },
  });
}

function startSession(method: SignInMethod, grant: SessionGrant, leftMs: number): void {
  clearTimeout(alarm);
  alarm = setTimeout(() => endSession('Your session has expired.'), leftMs);
  const { access_token: token, scope, realms, label, actor = label } = grant;
  const endsAt = performance.now() + leftMs;
  session.set({
    open: { token, method, scopes: new Set(scope.split(' ')), realms, label, endsAt },
    owner: `${method} ${actor}`,
    message: undefined,
  });
}

/** Whether the session that is open has this scope. */
export function hasScope({ open }: SessionState, scope: string): boolean {
  return open?.scopes.has(scope) ?? false;
}

/** What outlives a reload, and a visit to a provider: it lies in the storage of this tab, and nowhere else. */

const SESSION_KEY = 'authrealm.session';
const SIGN_IN_KEY = 'authrealm.visit';

interface Kept {
  readonly method: SignInMethod;
  readonly grant: SessionGrant;
}

interface KeptWithEnd extends Kept {
  /** By the clock of this machine, which is only ever held against itself. */
  readonly savedAt: number;
}

function saveSession(what: Kept): void {
  const whole: KeptWithEnd = { ...what, savedAt: Date.now() };
  sessionStorage.setItem(SESSION_KEY, JSON.stringify(whole));
}

/** With the milliseconds that are left of it. */
function loadSession(): (Kept & { readonly leftMs: number }) | undefined {
  const found = readItem<KeptWithEnd>(SESSION_KEY);
  if (!found) return undefined;
  const all = found.grant.expires_in * 1_000;
  return { ...found, leftMs: Math.min(all, all - (Date.now() - found.savedAt)) };
}

function clearSession(): void {
  sessionStorage.removeItem(SESSION_KEY);
}

/** What is needed to believe a provider's answer. */
interface PendingSignIn {
  readonly name: string;
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where the page was. */
  readonly fragment: string;
}

export function savePendingSignIn(visit: PendingSignIn): void {
  sessionStorage.setItem(SIGN_IN_KEY, JSON.stringify(visit));
}

/** Once: an answer that comes twice is believed by nobody. */
export function takePendingSignIn(): PendingSignIn | undefined {
  const visit = readItem<PendingSignIn>(SIGN_IN_KEY);
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
export function sessionOwned<T extends { cancel(): void }>(): Observable<T | undefined> {
  const work = observable<T | undefined>(undefined);
  let { owner } = session.get();
  session.subscribe((state) => {
    if (state.owner === owner) return;
    owner = state.owner;
    work.get()?.cancel();
    work.set(undefined);
  });
  return work;
}
