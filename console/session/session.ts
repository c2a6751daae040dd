import { observable } from '../observable.ts';

/** The rights of the console, and how long they last. */
interface Session {
  readonly stored: StoredSession;
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

/** A session as a tab stores it, and gives it to other tabs. */
export interface StoredSession {
  /** The same for all its tokens, and in all its tabs. */
  readonly id: string;
  readonly method: SignInMethod;
  readonly grant: SessionGrant;
  /** When its token was received, by the local wall clock; only compared with itself. */
  readonly savedAt: number;
}

export const session = observable<SessionState>({
  open: undefined,
  ended: undefined,
  page: 0,
  message: undefined,
});

let alarm: ReturnType<typeof setTimeout> | undefined;

/** Opens a new session, which survives a reload. */
export function openSession(method: SignInMethod, grant: SessionGrant): void {
  const id = crypto.getRandomValues(new Uint32Array(4)).join('-');
  adoptSession({ id, method, grant, savedAt: Date.now() });
}

/** Continues the open session with a new token. */
export function renewSession(renewal: Omit<SessionGrant, 'label'>): void {
  const { open } = session.get();
  if (!open) return;
  const { stored, label } = open;
  // The other tabs take the later token, also if the clock was set back meanwhile.
  const savedAt = Math.max(Date.now(), stored.savedAt + 1);
  adoptSession({ ...stored, grant: { ...renewal, label }, savedAt });
}

/** Restores the session of this tab after a reload. */
export function resumeSession(): void {
  const stored = readItem<StoredSession>(SESSION_KEY);
  // A page of another release may have stored it.
  if (stored?.id === undefined) return;
  if (ageMs(stored) < stored.grant.expires_in * 1_000) adoptSession(stored);
  else endSession('Your session has expired.');
}

/** Opens a session, of this tab or another one, in place of the present one; or continues it with another token. */
export function adoptSession(stored: StoredSession): void {
  sessionStorage.setItem(SESSION_KEY, JSON.stringify(stored));
  const before = session.get();
  const open = sessionOf(stored);
  if (before.open?.stored.id === stored.id) {
    session.set({ ...before, open });
    return;
  }
  const previous = before.open ?? before.ended;
  const continues = previous !== undefined && isContinuedBy(previous, open);
  const page = continues && before.ended ? before.page : before.page + 1;
  session.set({ open, ended: undefined, page, message: undefined });
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
  sessionStorage.removeItem(SESSION_KEY);
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

/** The label of links without `--label`: several users share it. */
export const SHARED_LABEL = 'command line';

/** Whether a session is the same, or one of the same user that can read what the previous one could. */
function isContinuedBy(previous: Session, { stored, method, label, user, scopes, realms }: Session): boolean {
  if (stored.id === previous.stored.id) return true;
  if (user !== previous.user || (method === 'link' && label === SHARED_LABEL)) return false;
  if (![...previous.scopes].every((scope) => scopes.has(scope))) return false;
  return realms === '*' || (previous.realms !== '*' && previous.realms.every((id) => realms.includes(id)));
}

function ageMs({ savedAt }: StoredSession): number {
  return Math.max(0, Date.now() - savedAt);
}

/** When a session ends, however often its token is renewed. */
export function endOf({ savedAt, grant }: StoredSession): string {
  return new Date(savedAt + grant.session_expires_in * 1_000).toISOString();
}

/** The session of a stored one. Sets the alarm for its end. */
function sessionOf(stored: StoredSession): Session {
  const { method, grant } = stored;
  const { access_token: token, expires_in, session_expires_in, scope, realms, label, actor } = grant;
  const grantedAt = performance.now() - ageMs(stored);
  clearTimeout(alarm);
  alarm = setTimeout(() => endSession('Your session has expired.'), expires_in * 1_000 - ageMs(stored));
  return {
    ...{ stored, token, method, scopes: new Set(scope.split(' ')), realms, label },
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
