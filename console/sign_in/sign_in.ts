import { callApi } from '../api/call_api.ts';
import { Problem, type ProblemKind, toProblem } from '../api/problem.ts';
import { revokeToken } from '../api/sign_out.ts';
import { currentFragment, replaceLocation } from '../layout/router.ts';
import { observable } from '../observable.ts';
import { announce } from '../parts/announcer.tsx';
import {
  openSession,
  type PendingSignIn,
  type SessionGrant,
  savePendingSignIn,
  session,
  setSignInError,
  takePendingSignIn,
} from '../session/session.ts';
import { isInOtherTabs } from '../session/tabs.ts';

/** A sign-in that the address of the page carries. */
type SignInCallback =
  | { readonly method: 'link'; readonly code: string }
  | { readonly method: 'provider'; readonly body: ProviderGrant }
  /** The response to a request of another tab, or of none. */
  | { readonly method: 'foreign'; readonly query: string }
  | { readonly method: 'refused'; readonly reason: string };

interface ProviderGrant {
  readonly grant: 'provider';
  readonly name: string;
  readonly code: string;
  readonly code_verifier: string;
  readonly nonce: string;
  readonly iss: string | undefined;
}

/** Reads a one-time code or the response of a provider from the address, and removes it there first. */
export function readSignInCallback(): SignInCallback | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  if (code !== null) {
    replaceLocation(currentFragment());
    return { method: 'link', code };
  }
  const query = new URLSearchParams(location.search);
  if (query.has('code') || query.has('error')) return readProvider(query);
  return undefined;
}

function readProvider(query: URLSearchParams): SignInCallback {
  const stored = takePendingSignIn();
  replaceLocation(stored?.fragment ?? '#/');
  if (!stored || query.get('state') !== stored.state) return { method: 'foreign', query: String(query) };
  return readResponse(query, stored);
}

function readResponse(query: URLSearchParams, stored: PendingSignIn): SignInCallback {
  const iss = query.get('iss') ?? undefined;
  if (iss !== undefined && iss !== stored.issuer) {
    return {
      method: 'refused',
      reason: 'The sign-in response came from a different provider. Sign in again.',
    };
  }
  const code = query.get('code');
  if (code === null) {
    return {
      method: 'refused',
      reason: `The provider did not sign you in (${errorCode(query.get('error'))}).`,
    };
  }
  const { name, verifier, nonce } = stored;
  return { method: 'provider', body: { grant: 'provider', name, code, code_verifier: verifier, nonce, iss } };
}

/** Only an error code as in RFC 6749 is displayed. */
function errorCode(error: string | null): string {
  return /^[a-z_]{1,40}$/.test(error ?? '') ? String(error) : 'no reason given';
}

/** Messages for the one refusal that the service gives without a reason. */
const REFUSED: Readonly<Record<string, string>> = {
  'link refused':
    'This link has already been used or is more than a minute old, or it is an invitation that was withdrawn or is a day ' +
    'old. Ask for a new one, or create one with "authrealm console link".',
  'provider refused': 'The response of the provider is no longer valid. Sign in again.',
  'provider forbidden':
    'The provider authenticated you, but you have no permissions here. Ask the operator of this service.',
};

/** True while a sign-in is in progress. */
export const isSigningIn = observable(false);

/**
 * Exchanges a callback for a session, which replaces an open one. A failure never ends the open session:
 * anyone can craft an invalid link.
 */
export async function completeSignIn(callback: SignInCallback): Promise<void> {
  if (callback.method === 'refused') return showFailure(callback, callback.reason);
  if (callback.method === 'foreign') return forwardResponse(callback);
  const data = callback.method === 'link' ? { grant: 'link', code: callback.code } : callback.body;
  isSigningIn.set(true);
  try {
    const isShared = await isInOtherTabs();
    const { body } = await callApi<{ data: SessionGrant }>({
      method: 'POST',
      path: 'console/token',
      body: { data },
    });
    const replacesSession = session.get().open !== undefined;
    // The code is used: store the session before anything is awaited.
    if (!isShared) void revokeToken();
    openSession(callback.method, body.data);
    if (replacesSession) announce(`You are now signed in as ${body.data.label}.`);
  } catch (error) {
    const { kind, message } = toProblem(error);
    const retry = RETRYABLE.has(kind) ? () => void completeSignIn(callback) : undefined;
    showFailure(callback, REFUSED[`${callback.method} ${kind}`] ?? message, retry);
  } finally {
    isSigningIn.set(false);
  }
}

/** Errors after which a code may still be valid. */
const RETRYABLE: ReadonlySet<ProblemKind> = new Set(['busy', 'lost', 'broken']);

/** The last callback that can be retried. */
let pending: SignInCallback | undefined;

function showFailure(callback: SignInCallback, reason: string, retry?: () => void): void {
  const { open, retry: previousRetry } = session.get();
  const words = open ? `${reason} The session of ${open.label} continues.` : reason;
  if (retry !== undefined) {
    pending = callback;
    setSignInError(words, retry);
  } else if (previousRetry !== undefined && pending !== callback) {
    setSignInError(`${words} The earlier sign-in can still be retried.`, previousRetry);
  } else {
    if (open) announce(words);
    setSignInError(open ? undefined : words);
  }
}

/** The redirect URI of the service is not the address of this page. */
export class WrongAddress extends Error {
  readonly address: string;

  constructor(address: string) {
    super('the console has another address');
    this.address = address;
  }
}

/**
 * Goes to a provider; in a window of its own if this page has an ended session, so that it stays with what was typed.
 * Throws Problem or WrongAddress.
 */
export async function goToProvider(name: string): Promise<void> {
  if (!session.get().ended) {
    const { target, pending } = await authorizationRequest(name);
    savePendingSignIn(pending);
    location.assign(target);
    return;
  }
  // Opened before anything is awaited: browsers block windows that do not follow a click.
  const opened = open('', '_blank', 'popup,width=520,height=720');
  if (!opened) {
    throw new Problem(
      'refused',
      'The browser blocked the sign-in window. Allow pop-up windows for this address, then try again.',
    );
  }
  try {
    const { target, pending } = await authorizationRequest(name);
    awaitResponse(pending);
    opened.location.replace(target);
  } catch (error) {
    opened.close();
    throw error;
  }
}

/** Only pages of this origin can read it. A window that was at a provider has no other connection to its opener. */
const CHANNEL = 'authrealm.sign-in';
/** How long the tab that requested a response may take to accept it: it may be busy, or in the background. */
const FORWARD_MS_MAX = 5_000;

let awaited: BroadcastChannel | undefined;
// Without an ended session no page waits for a response: another sign-in has begun, or the page was discarded.
session.subscribe(({ ended }) => {
  if (!ended) awaited?.close();
});

/** Completes the sign-in when the window of this request returns from the provider. */
function awaitResponse(pending: PendingSignIn): void {
  awaited?.close();
  const channel = new BroadcastChannel(CHANNEL);
  awaited = channel;
  channel.onmessage = ({ data }: MessageEvent<string>) => {
    const query = new URLSearchParams(data);
    if (query.get('state') !== pending.state) return;
    channel.postMessage(pending.state);
    channel.close();
    void completeSignIn(readResponse(query, pending));
  };
}

/** Forwards a response to the tab that requested it. */
async function forwardResponse(callback: {
  readonly method: 'foreign';
  readonly query: string;
}): Promise<void> {
  const state = new URLSearchParams(callback.query).get('state');
  const channel = new BroadcastChannel(CHANNEL);
  isSigningIn.set(true);
  const isAccepted = await new Promise<boolean>((resolve) => {
    channel.onmessage = ({ data }: MessageEvent<string>) => {
      if (data === state) resolve(true);
    };
    setTimeout(() => resolve(false), FORWARD_MS_MAX);
    channel.postMessage(callback.query);
  });
  channel.close();
  isSigningIn.set(false);
  if (!isAccepted)
    return showFailure(callback, 'This sign-in response was not requested by this tab. Sign in again.');
  setSignInError('The sign-in continues in the tab that you came from. You can close this window.');
  close();
}

/** The address of a provider for a sign-in, and what verifies its response. Throws Problem or WrongAddress. */
async function authorizationRequest(
  name: string,
): Promise<{ readonly target: string; readonly pending: PendingSignIn }> {
  const { body } = await callApi<{ data: Readonly<Record<string, string>> }>({
    method: 'POST',
    path: 'console/provider',
    body: { data: { name } },
  });
  const {
    authorization_endpoint = '',
    client_id = '',
    issuer = '',
    scope = '',
    redirect_uri = '',
  } = body.data;
  // sessionStorage belongs to this origin and would not be found from another one.
  if (redirect_uri !== location.origin + location.pathname) throw new WrongAddress(redirect_uri);
  const pending = {
    name,
    issuer,
    state: randomToken(),
    nonce: randomToken(),
    verifier: randomToken(),
    fragment: location.hash,
  };
  const target = new URL(authorization_endpoint);
  const parameters = {
    response_type: 'code',
    client_id,
    scope,
    redirect_uri,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: 'S256',
  };
  for (const [parameter, value] of Object.entries(parameters)) target.searchParams.set(parameter, value);
  return { target: target.href, pending };
}

const RANDOM_BYTES = 32;

/** A random token for state, nonce and PKCE verifier. */
function randomToken(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
}

async function challengeOf(verifier: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
