import type { Uuid } from '../domain/id.ts';
import type { Line } from './line.ts';
import type { Standing } from './port.ts';
import { type Begin, openSources } from './sources.ts';
import type { Places } from './teller.ts';
import { tellRealm } from './telling.ts';

/** The realms of one receiver. */
export interface Realms {
  /** Looks for those with something to tell, and tells them as far as there are places. */
  look(): Promise<void>;
  /** The first one that the last look had no place for. */
  passedOver(): Standing | undefined;
}

/**
 * Makes what looks for realms with something to tell one receiver, and tells them as far as there are places. A realm is
 * found because its clock moved, because something was not received and is due, or because it was told of just now. All
 * realms are walked over but at the start, and now and then: a release before this one moves clocks without a sign of it.
 */
export function openRealms(line: Line, places: Places): Realms {
  const { rooms, ledger, webhook, mayGoOn } = line;
  /** Realms whose progress is not written down yet: what is read about them is not right any more. */
  const unsettled = new Set<Uuid>();
  const sources = openSources(line, unsettled);
  let seen = webhook().revision;
  let passedOver: Standing | undefined;
  let isLooking = false;
  let isWanted = false;

  function settle(realm: Uuid): void {
    ledger
      .settled()
      .catch(rooms.onTrouble)
      .finally(() => {
        unsettled.delete(realm);
        // More may have happened meanwhile, or it was broken off.
        sources.again(realm);
      });
  }

  /** For rows that are read after this was called. */
  function beginner(): Begin {
    const stale = new Set(unsettled);
    return (standing) => {
      const { realm, head, seq } = standing;
      const { realms } = webhook();
      if (head <= seq || stale.has(realm) || unsettled.has(realm)) return true;
      if (realms !== '*' && !realms.has(realm)) return true;
      if (places.isBusy()) passedOver ??= standing;
      if (places.isBusy() || !mayGoOn(realm)) return false;
      unsettled.add(realm);
      const telling = tellRealm(line, standing).finally(() => settle(realm));
      places.take(realm, telling, look);
      return true;
    };
  }

  async function lookOnce(): Promise<void> {
    if (places.isBusy()) return;
    const { revision } = webhook();
    if (revision !== seen) sources.restart();
    seen = revision;
    passedOver = undefined;
    await sources.look(beginner);
  }

  async function look(): Promise<void> {
    isWanted = true;
    if (isLooking) return;
    isLooking = true;
    isWanted = false;
    try {
      await lookOnce();
    } finally {
      isLooking = false;
    }
    // A place has become free meanwhile.
    if (isWanted) setImmediate(() => look().catch(rooms.onTrouble));
  }

  return { look, passedOver: () => passedOver };
}
