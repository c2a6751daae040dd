import { observable } from '../observable.ts';

/** The rights of the console, and how long they last. */
interface Session {
  readonly token: string;
  readonly method: SignInMethod;
  readonly scopes: ReadonlySet<string>;
  /** `*` means all realms. */
  readonly realms: '*' | readonly string[];
  /** Display name of the user. */
  readonly label: string;
  /** Identifies the user: the method with the name in the audit log. */
  readonly user: string;
  /** When its token expires, on the monotonic clock (`performance.now`). */
  readonly expiresAt: number;
  /** When it ends, however often its token is renewed. */
  readonly endsAt: number;
}

type SignInMethod = 'link' | 'provider';

export interface SessionState {
  readonly open: Session | undefined;
  /** The session that has ended: its page stays, with what was typed, until the next sign-in. */
  readonly ended: Session | undefined;
  /** Differs for every user and after each sign-out: what a page has read and what was typed are discarded with it. */
  readonly page: number;
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
  /** Seconds until the session ends, however often its token is renewed. */
  readonly session_expires_in: number;
  readonly scope: string;
  readonly realms: '*' | readonly string[];
  readonly label: string;
  /** The name in the audit log. */
  readonly actor: string;
}

export const session = observable<SessionState>({
  open: undefined,
  ended: undefined,
  page: 0,
  message: undefined,
});

let alarm: ReturnType<typeof setTimeout> | undefined;

/** A session survives a reload. */
export function openSession(method: SignInMethod, grant: SessionGrant): void {
  saveSession({ method, grant });
  startSession(method, grant, 0);
}

/** Continues the open session with a new token. */
export function renewSession(renewal: Omit<SessionGrant, 'label'>): void {
  const state = session.get();
  if (!state.open) return;
  const { method, label } = state.open;
  const grant = { ...renewal, label };
  saveSession({ method, grant });
  session.set({ ...state, open: sessionOf(method, grant, 0) });
}

/** Restores the session of this tab after a reload. */
export function resumeSession(): void {
  const found = loadSession();
  if (!found) return;
  const { method, grant, ageMs } = found;
  if (ageMs < grant.expires_in * 1_000) startSession(method, grant, ageMs);
  else endSession('Your session has expired.');
}

/** Ends the session; the same user can sign in again and continue. */
export function endSession(message: string | undefined): void {
  const { open, ended = open, page, retry } = session.get();
  end({ open: undefined, ended, page, message, retry });
}

/** Ends the session, and discards its page. */
export function closeSession(message: string): void {
  end({ open: undefined, ended: undefined, page: session.get().page, message });
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

function startSession(method: SignInMethod, grant: SessionGrant, ageMs: number): void {
  const before = session.get();
  const open = sessionOf(method, grant, ageMs);
  const previous = before.open ?? before.ended;
  const continues = previous !== undefined && isContinuedBy(previous, open);
  const page = continues && before.ended ? before.page : before.page + 1;
  session.set({ open, ended: undefined, page, message: undefined });
}

/** The label of links without `--label`: several users share it. */
const SHARED_LABEL = 'command line';

/** Whether a new session is of the same user, and can read what the previous one could. */
function isContinuedBy(previous: Session, { method, label, user, scopes, realms }: Session): boolean {
  if (user !== previous.user || (method === 'link' && label === SHARED_LABEL)) return false;
  if (![...previous.scopes].every((scope) => scopes.has(scope))) return false;
  return realms === '*' || (previous.realms !== '*' && previous.realms.every((id) => realms.includes(id)));
}

/** The session of a grant of this age. Sets the alarm for its end. */
function sessionOf(method: SignInMethod, grant: SessionGrant, ageMs: number): Session {
  const { access_token: token, expires_in, session_expires_in, scope, realms, label, actor } = grant;
  const grantedAt = performance.now() - ageMs;
  clearTimeout(alarm);
  alarm = setTimeout(() => endSession('Your session has expired.'), expires_in * 1_000 - ageMs);
  return {
    ...{ token, method, scopes: new Set(scope.split(' ')), realms, label },
    user: `${method} ${actor}`,
    expiresAt: grantedAt + expires_in * 1_000,
    endsAt: grantedAt + session_expires_in * 1_000,
  };
}

/** Whether the session has this scope; or had it, while its page waits for the next sign-in. */
export function hasScope({ open, ended }: SessionState, scope: string): boolean {
  return (open ?? ended)?.scopes.has(scope) ?? false;
}

/** The same for all realms. */
export function hasAllRealms({ open, ended }: SessionState): boolean {
  return (open ?? ended)?.realms === '*';
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

/** With its age. */
function loadSession(): (StoredGrant & { readonly ageMs: number }) | undefined {
  const found = readItem<TimedGrant>(SESSION_KEY);
  // A page of another release may have stored it.
  if (!found?.grant) return undefined;
  return { ...found, ageMs: Math.max(0, Date.now() - found.savedAt) };
}

function clearSession(): void {
  sessionStorage.removeItem(SESSION_KEY);
}

/** Needed to verify the response of a provider. */
export interface PendingSignIn {
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
