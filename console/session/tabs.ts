import { observable } from '../observable.ts';
import { adoptSession, closeSession, type StoredSession, session } from './session.ts';

/** Every page of the origin can read what tabs share, so no other program may have pages there. Locks need https, or loopback. */
function unsharedReason(): string | undefined {
  if (new URL('.', location.href).pathname !== '/') return 'has a path, so other programs may have its host';
  return isSecureContext ? undefined : 'is not https';
}

/** Completes "The address of this console …"; undefined if its tabs share sessions. */
export const UNSHARED_REASON = unsharedReason();

type Message =
  | { readonly kind: 'asked' }
  /** The session of a tab: it is new, renewed or used, or this is an answer. */
  | { readonly kind: 'session' | 'used'; readonly stored: StoredSession }
  /** `left`: its user has signed out. `ended`: the tab that sent this has it no more. */
  | { readonly kind: 'left' | 'ended'; readonly id: string };

const channel = UNSHARED_REASON === undefined ? new BroadcastChannel('authrealm.sessions') : undefined;

function post(message: Message): void {
  channel?.postMessage(message);
}

/** Sessions of other tabs that this one, without a session, can take; by ID. */
export const offers = observable<ReadonlyMap<string, StoredSession>>(new Map());

/** When a tab with the session of this one was used last, on the monotonic clock. */
let usedAt = performance.now();

export const lastUse = () => usedAt;

/** Shares the session of this tab from now on, also its next tokens. When it ends, the tab asks the others for theirs. */
export function joinTabs(): void {
  if (!channel) return;
  channel.onmessage = ({ data }: MessageEvent<Message>) => receive(data);
  session.subscribe(({ open }) => {
    if (locked !== undefined && locked !== open?.stored.id) post({ kind: 'ended', id: locked });
    lock(open?.stored.id);
    if (open) offers.set(new Map());
    post(open ? { kind: 'session', stored: open.stored } : { kind: 'asked' });
  });
}

function receive(message: Message): void {
  const { open } = session.get();
  if ('id' in message) receiveEnd(message);
  else if (message.kind !== 'asked') receiveSession(message);
  else if (open) post({ kind: 'session', stored: open.stored });
}

function receiveSession({ kind, stored }: Extract<Message, { stored: unknown }>): void {
  const { open, ended } = session.get();
  const own = (open ?? ended)?.stored;
  if (stored.id === own?.id) {
    if (kind === 'used') usedAt = performance.now();
    // A token that is not newer may be the one that the service has refused.
    if (stored.savedAt > own.savedAt) adoptSession(stored);
  } else if (!open) {
    offers.set(new Map(offers.get()).set(stored.id, stored));
  }
}

function receiveEnd({ kind, id }: Extract<Message, { id: string }>): void {
  const { open, ended } = session.get();
  offers.set(new Map([...offers.get()].filter(([offered]) => offered !== id)));
  if (kind === 'left' && id === (open ?? ended)?.stored.id)
    closeSession('You have signed out in another tab.');
  // A third tab may have it still.
  else if (kind === 'ended' && !open) post({ kind: 'asked' });
}

/** Time between two messages about use. */
const SHARED_MS = 5_000;
let sharedAt = Number.NEGATIVE_INFINITY;

/** This tab is used. */
export function noteUse(): void {
  const { open } = session.get();
  usedAt = performance.now();
  if (!open || usedAt - sharedAt < SHARED_MS) return;
  sharedAt = usedAt;
  post({ kind: 'used', stored: open.stored });
}

/** Ends the session in the other tabs that have it. */
export function shareSignOut(): void {
  const { open } = session.get();
  if (open) post({ kind: 'left', id: open.stored.id });
}

/** Every tab with a session holds a lock of this name and its ID: other tabs count the sessions by these locks. */
const LOCK = 'authrealm.session ';

let locked: string | undefined;
let unlock: () => void = () => undefined;

function lock(id: string | undefined): void {
  if (id === locked) return;
  locked = id;
  unlock();
  if (id === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  unlock = resolve;
  void navigator.locks.request(LOCK + id, { mode: 'shared' }, () => promise);
}

/** The IDs of the sessions of all tabs, once a tab. */
async function lockedSessions(): Promise<readonly string[]> {
  const { held = [] } = await navigator.locks.query();
  return held.flatMap(({ name = '' }) => (name.startsWith(LOCK) ? [name.slice(LOCK.length)] : []));
}

/** Whether another tab has the session of this one too. */
export async function isInOtherTabs(): Promise<boolean> {
  if (!channel || locked === undefined) return false;
  return (await lockedSessions()).filter((id) => id === locked).length > 1;
}

/** How long a tab may take to answer: it may be busy, or in the background. */
const ANSWER_MS_MAX = 5_000;

/** Takes the session of the other tabs. If they have several, the sign-in page asks which. */
export async function askTabs(): Promise<void> {
  const { size } = new Set(channel && (await lockedSessions()));
  if (size === 0) return;
  await new Promise<void>((resolve) => {
    offers.subscribe((found) => {
      if (found.size === size) resolve();
    });
    setTimeout(resolve, ANSWER_MS_MAX);
    post({ kind: 'asked' });
  });
  const [only] = offers.get().values();
  if (size === 1 && only && !session.get().open) adoptSession(only);
}

/** Runs in one of the tabs of a session at a time; the others skip it. */
export async function inOneTab(id: string, run: () => Promise<void>): Promise<void> {
  if (!channel) return run();
  await navigator.locks.request(`authrealm.renewal ${id}`, { ifAvailable: true }, (granted) =>
    granted ? run() : undefined,
  );
}
