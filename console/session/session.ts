import { type Observable, observable } from '../observable.ts';

/** The rights of the console, and how long they last. */
interface Session {
  readonly token: string;
  readonly method: SignInMethod;
  readonly scopes: ReadonlySet<string>;
  /** `*` means all realms. */
  readonly realms: '*' | readonly string[];
  /** Display name of the user. */
  readonly label: string;
  /** On the monotonic clock (`performance.now`). */
  readonly endsAt: number;
}

type SignInMethod = 'link' | 'provider' | 'client_credentials';

export interface SessionState {
  readonly open: Session | undefined;
  /** The user of this or the expired session: imports and exports belong to it. */
  readonly owner: string | undefined;
  /** Why sign-in failed or the session ended. */
  readonly message: string | undefined;
  /** Retries a sign-in that failed temporarily. */
  readonly retry?: (() => void) | undefined;
}

/** The response that opens a session. */
export interface SessionGrant {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly scope: string;
  readonly realms: '*' | readonly string[];
  readonly label: string;
  /** The name in the audit log; absent for client credentials. */
  readonly actor?: string;
}

export const session = observable<SessionState>({ open: undefined, owner: undefined, message: undefined });

let alarm: ReturnType<typeof setTimeout> | undefined;

/** Client credential sessions stay in memory; the others survive a reload. */
export function openSession(method: SignInMethod, grant: SessionGrant): void {
  if (method !== 'client_credentials') saveSession({ method, grant });
  startSession(method, grant, grant.expires_in * 1_000);
}

/** Restores the session of this tab after a reload. */
export function resumeSession(): void {
  const found = loadSession();
  if (!found) return;
  if (found.leftMs > 0) startSession(found.method, found.grant, found.leftMs);
  else endSession('Your session has expired.');
}

/** Ends the session; the same user can sign in again and continue. */
export function endSession(message: string | undefined): void {
  const { owner, retry } = session.get();
  end({ open: undefined, owner, message, retry });
}

/** Ends the session and cancels its imports and exports. */
export function closeSession(message: string): void {
  end({ open: undefined, owner: undefined, message });
}

function end(state: SessionState): void {
  clearTimeout(alarm);
  clearSession();
  session.set(state);
}

/** Sets or clears a sign-in error; an open session continues. */
export function setSignInError(message?: string, retry?: () => void): void {
  session.set({ ...session.get(), message, retry });
}

/** Removes a scope that the service has refused. */
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

/** Whether the session has this scope. */
export function hasScope({ open }: SessionState, scope: string): boolean {
  return open?.scopes.has(scope) ?? false;
}

/** Survives a reload and the redirect to a provider, in the storage of this tab only. */

const SESSION_KEY = 'authrealm.session';
const SIGN_IN_KEY = 'authrealm.visit';

interface StoredGrant {
  readonly method: SignInMethod;
  readonly grant: SessionGrant;
}

interface TimedGrant extends StoredGrant {
  /** Local wall clock; only compared with itself. */
  readonly savedAt: number;
}

function saveSession(stored: StoredGrant): void {
  const timed: TimedGrant = { ...stored, savedAt: Date.now() };
  sessionStorage.setItem(SESSION_KEY, JSON.stringify(timed));
}

/** With its remaining time. */
function loadSession(): (StoredGrant & { readonly leftMs: number }) | undefined {
  const found = readItem<TimedGrant>(SESSION_KEY);
  // A page of another release may have stored it.
  if (!found?.grant) return undefined;
  const all = found.grant.expires_in * 1_000;
  return { ...found, leftMs: Math.min(all, all - (Date.now() - found.savedAt)) };
}

function clearSession(): void {
  sessionStorage.removeItem(SESSION_KEY);
}

/** Needed to verify the response of a provider. */
interface PendingSignIn {
  readonly name: string;
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The route to return to. */
  readonly fragment: string;
}

export function savePendingSignIn(pending: PendingSignIn): void {
  sessionStorage.setItem(SIGN_IN_KEY, JSON.stringify(pending));
}

/** Removes it, so that a response is accepted once. */
export function takePendingSignIn(): PendingSignIn | undefined {
  const pending = readItem<PendingSignIn>(SIGN_IN_KEY);
  sessionStorage.removeItem(SIGN_IN_KEY);
  return pending;
}

function readItem<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(name);
  return text === null ? undefined : (JSON.parse(text) as T);
}

/**
 * Background work that survives navigation and an expired session. It is cancelled when its user signs out
 * or another user signs in.
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
