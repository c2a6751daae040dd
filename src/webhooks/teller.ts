import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { openLedger } from './ledger.ts';
import type { Line, TellerRooms } from './line.ts';
import type { Arrears, Webhook } from './port.ts';
import { openRealms } from './realms.ts';
import { sendAgain } from './redelivery.ts';

/** Tells one receiver what it was not told yet: realm by realm in its order, some realms at once. */
export interface Teller {
  /** Looks for what there is to tell. The receiver may have been changed since. */
  look(webhook: Webhook): Promise<void>;
  /** Whether another process tells this receiver by now. */
  isOver(): boolean;
  arrears(): Promise<Arrears>;
  /** Ends after `graceMs` at the latest; what is under way by then is broken off, and told again by whoever goes on. */
  stop(graceMs: number): Promise<void>;
}

interface Term {
  readonly lease: { readonly name: string; readonly holder: string };
  readonly isHeld: () => boolean;
}

/** The place of dead letters, which are sent again one after the other. */
const LETTER = 'letter';

export function openTeller(rooms: TellerRooms, first: Webhook, { lease, isHeld }: Term): Teller {
  const { store, ambient, onTrouble } = rooms;
  const { webhookId } = first;
  const ledger = openLedger(store, webhookId, lease);
  const ending = new AbortController();
  const places = openPlaces(ambient.monotonic, onTrouble);
  let webhook = first;
  let isStopping = false;
  const isListed = (realm: Uuid): boolean => webhook.realms === '*' || webhook.realms.has(realm);
  const line: Line = {
    rooms,
    webhookId,
    ledger,
    underWay: new Map(),
    signal: ending.signal,
    webhook: () => webhook,
    mayGoOn: (realm) =>
      !isStopping && isHeld() && !ledger.isClosed() && webhook.disabledAt === undefined && isListed(realm),
  };
  const realms = openRealms(line, places);

  async function lookForLetter(): Promise<void> {
    // The one that is being sent waits until what became of it is written down.
    if (places.isBusy() || places.has(LETTER)) return;
    const [letter] = await store.waitingLetters(webhookId, 1);
    if (letter && !places.has(LETTER) && line.mayGoOn(letter.realm))
      places.take(LETTER, sendAgain(line, letter), realms.look);
  }

  return {
    async look(current) {
      webhook = current;
      await lookForLetter();
      await realms.look();
    },
    isOver: () => ledger.isClosed(),
    async arrears() {
      const tried = await store.arrears(webhookId);
      const passedOver = realms.passedOver();
      const waiting = passedOver ? await rooms.changes(passedOver.realm, passedOver.seq, 1) : [];
      const underWay = [...line.underWay].filter(([realm]) => isListed(realm)).map(([, at]) => at);
      const times = [tried.since ?? [], waiting.map(({ at }) => at), underWay].flat();
      return { ...tried, since: times.length > 0 ? Math.min(...times) : undefined };
    },
    async stop(graceMs) {
      isStopping = true;
      await Promise.race([places.empty(), Bun.sleep(graceMs)]);
      ending.abort();
      await places.empty();
      await Promise.race([
        ledger.settled().catch(onTrouble),
        Bun.sleep(graceMs + 2 * LIMITS.webhookSettleMs),
      ]);
      ledger.close();
    },
  };
}

/** Trouble of ours would be there at once again. */
const REST_MS = 5_000;

/** How much is sent at once. */
export interface Places {
  /** Whether there is none, or nothing is to be begun for now. */
  isBusy(): boolean;
  /** Whether the work of this name is under way. */
  has(name: string): boolean;
  /** Counts a work by its name until it ends, and goes on by `next`, unless it was in trouble. */
  take(name: string, work: Promise<void>, next: () => Promise<void>): void;
  /** Resolves when nothing is under way. */
  empty(): Promise<void>;
}

function openPlaces(monotonic: () => number, onTrouble: (error: unknown) => void): Places {
  const running = new Map<string, Promise<void>>();
  let restsUntil = 0;
  const rest = (error: unknown): void => {
    restsUntil = monotonic() + REST_MS;
    onTrouble(error);
  };
  return {
    isBusy: () => running.size >= LIMITS.webhookRealmsAtOnceMax || monotonic() < restsUntil,
    has: (name) => running.has(name),
    take(name, work, next) {
      const leave = () => running.delete(name);
      const watched = work.finally(leave).then(() => {
        next().catch(rest);
      }, rest);
      running.set(name, watched);
    },
    async empty() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
