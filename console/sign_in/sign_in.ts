import { ask } from '../api/call_api.ts';
import { type ProblemKind, problemOf } from '../api/problem.ts';
import { giveBack } from '../api/sign_out.ts';
import { arriveAt, currentFragment } from '../layout/router.ts';
import { observable } from '../observable.ts';
import { announce } from '../parts/announcer.tsx';
import {
  keepVisit,
  type Opening,
  openSession,
  session,
  takeVisit,
  tellHindrance,
} from '../session/session.ts';

/** What an address brings that a session can be opened with. */
type Arrival =
  | { readonly way: 'link'; readonly code: string }
  | { readonly way: 'provider'; readonly body: ProviderGrant }
  | { readonly way: 'refused'; readonly why: string };

interface ProviderGrant {
  readonly grant: 'provider';
  readonly name: string;
  readonly code: string;
  readonly code_verifier: string;
  readonly nonce: string;
  readonly iss: string | undefined;
}

/**
 * Reads the one-time code of a link, or the answer of a provider, off the address of the page, and takes it out of there
 * before anything else happens.
 */
export function readArrival(): Arrival | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  if (code !== null) {
    arriveAt(currentFragment());
    return { way: 'link', code };
  }
  const query = new URLSearchParams(location.search);
  if (query.has('code') || query.has('error')) return readProvider(query);
  return undefined;
}

function readProvider(query: URLSearchParams): Arrival {
  const visit = takeVisit();
  arriveAt(visit?.fragment ?? '#/');
  if (!visit || query.get('state') !== visit.state) {
    return { way: 'refused', why: 'This sign-in response was not requested by this tab. Sign in again.' };
  }
  const iss = query.get('iss') ?? undefined;
  if (iss !== undefined && iss !== visit.issuer) {
    return { way: 'refused', why: 'The sign-in response came from a different provider. Sign in again.' };
  }
  const code = query.get('code');
  if (code === null) {
    return { way: 'refused', why: `The provider did not sign you in (${wordOf(query.get('error'))}).` };
  }
  const { name, verifier, nonce } = visit;
  return { way: 'provider', body: { grant: 'provider', name, code, code_verifier: verifier, nonce, iss } };
}

/** An error code as RFC 6749 has them; what is none is not repeated. */
function wordOf(error: string | null): string {
  return /^[a-z_]{1,40}$/.test(error ?? '') ? String(error) : 'no reason given';
}

/** How one can sign in here. */
export interface Ways {
  readonly link: boolean;
  readonly providers: readonly { readonly name: string }[];
  readonly client_credentials: boolean;
}

/** What hinders an arrival, where the service has one answer for whatever it may be. */
const REFUSED: Readonly<Record<string, string>> = {
  'link refused':
    'This link has already been used or is more than a minute old. Create a new one with: authrealm console link',
  'provider refused': 'The response of the provider is no longer valid. Sign in again.',
  'provider forbidden':
    'The provider authenticated you, but you have no permissions here. Ask the operator of this service.',
};

export async function askWays(): Promise<Ways> {
  return (await ask<{ data: Ways }>({ path: 'console/ways' })).body.data;
}

/** True while an arrival is asked for. */
export const isEntering = observable(false);

/**
 * Opens the session that an arrival is good for, in the place of one that is open. What hinders it is told, and ends
 * nothing: anybody can make a link that is good for nothing.
 */
export async function enter(arrival: Arrival): Promise<void> {
  if (arrival.way === 'refused') return hinder(arrival, arrival.why);
  const data = arrival.way === 'link' ? { grant: 'link', code: arrival.code } : arrival.body;
  isEntering.set(true);
  try {
    const { body } = await ask<{ data: Opening }>({
      method: 'POST',
      path: 'console/token',
      body: { data },
    });
    const isAnother = session.get().open !== undefined;
    // The code is spent: the session is kept before anything is waited for.
    void giveBack();
    openSession(arrival.way, body.data);
    if (isAnother) announce(`You are now signed in as ${body.data.label}.`);
  } catch (error) {
    const { kind, message } = problemOf(error);
    const again = UNASKED.has(kind) ? () => void enter(arrival) : undefined;
    hinder(arrival, REFUSED[`${arrival.way} ${kind}`] ?? message, again);
  } finally {
    isEntering.set(false);
  }
}

/** What is said where nobody may have looked at a code: it may be good still. */
const UNASKED: ReadonlySet<ProblemKind> = new Set(['busy', 'lost', 'broken']);

/** What was brought here last that can be tried again. */
let kept: Arrival | undefined;

function hinder(arrival: Arrival, why: string, again?: () => void): void {
  const { open, again: before } = session.get();
  const words = open ? `${why} The session of ${open.label} continues.` : why;
  if (again !== undefined) {
    kept = arrival;
    tellHindrance(words, again);
  } else if (before !== undefined && kept !== arrival) {
    tellHindrance(`${words} The earlier sign-in can still be retried.`, before);
  } else {
    if (open) announce(words);
    tellHindrance(open ? undefined : words);
  }
}

/** The service takes answers of providers at another address than the page has. */
export class Elsewhere extends Error {
  readonly address: string;

  constructor(address: string) {
    super('the console has another address');
    this.address = address;
  }
}

/** Leaves the page for a provider. Throws Problem, or Elsewhere. */
export async function visitProvider(name: string): Promise<void> {
  const { body } = await ask<{ data: Readonly<Record<string, string>> }>({
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
  // What is kept for the way back lies with this address, and would not be found from another one.
  if (redirect_uri !== location.origin + location.pathname) throw new Elsewhere(redirect_uri);
  const visit = { name, issuer, state: word(), nonce: word(), verifier: word(), fragment: location.hash };
  const target = new URL(authorization_endpoint);
  const asked = {
    response_type: 'code',
    client_id,
    scope,
    redirect_uri,
    state: visit.state,
    nonce: visit.nonce,
    code_challenge: await challengeOf(visit.verifier),
    code_challenge_method: 'S256',
  };
  for (const [parameter, value] of Object.entries(asked)) target.searchParams.set(parameter, value);
  keepVisit(visit);
  location.assign(target);
}

/** The token endpoint is asked as any client asks it; what it answers lies in memory alone. */
export async function signInAsClient(clientId: string, secret: string): Promise<void> {
  const { body } = await ask<Omit<Opening, 'realms' | 'label'>>({
    method: 'POST',
    path: 'oauth/access_token',
    form: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret },
  });
  openSession('client_credentials', { ...body, realms: realmsIn(body.access_token), label: clientId });
}

/** Of a token of our own: which realms it says. One that says none is for those that its client holds, whatever they are. */
function realmsIn(token: string): '*' | readonly string[] {
  const [, payload = ''] = token.split('.');
  const { realms = ['*'] } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))) as {
    realms?: readonly string[];
  };
  return realms.includes('*') ? '*' : realms;
}

const WORD_BYTES = 32;

/** A word that nobody can guess. */
function word(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(WORD_BYTES)));
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
