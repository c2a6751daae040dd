import { type Act, actOf } from '../domain/act.ts';
import { Fault } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { type IpAddress, siteOf } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import type { RefusedAccess } from '../domain/refused_access.ts';
import type { LogStore } from './port.ts';

/** Who was refused: a client whose token was good, else an address. */
export interface Refused {
  readonly clientId: string | undefined;
  readonly address: IpAddress | undefined;
}

export interface Refusals {
  count(who: Refused, why: RefusedAccess): void;
  /** Logs what was counted, for the last time. */
  stop(): Promise<void>;
}

interface Counter {
  readonly actor: string;
  readonly address: string | undefined;
  readonly why: RefusedAccess;
  readonly since: number;
  count: number;
}

/** The actor of an entry about somebody whom no token names. */
const NOBODY = 'nobody';
/** The actor of the one about all who found no counter of their own. */
const OTHERS = 'others';

/**
 * Counts refused access, by client or address and reason, and logs each count once a minute: who tries a million times
 * writes one entry. Who comes when all counters are taken is counted with the others. Where nothing can be written the
 * counts go on. It keeps no process alive.
 */
export function openRefusals(
  store: Pick<LogStore, 'note'>,
  { now }: Pick<Ambient, 'now'>,
  everyMs: number = LIMITS.refusalsLoggedEachMs,
): Refusals {
  let counters = new Map<string, Counter>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let logging: Promise<void> = Promise.resolve();

  function counterOf({ clientId, address }: Refused, why: RefusedAccess): Counter {
    const site = clientId === undefined && address !== undefined ? siteOf(address) : undefined;
    const own = `${clientId ?? ''} ${site ?? ''} ${why}`;
    const found = counters.get(own);
    if (found) return found;
    const isRoom = counters.size < LIMITS.refusalsCountedMax;
    const name = isRoom ? own : `${OTHERS} ${why}`;
    const actor = isRoom ? (clientId ?? NOBODY) : OTHERS;
    const counter = counters.get(name) ?? {
      actor,
      address: isRoom ? site : undefined,
      why,
      since: now(),
      count: 0,
    };
    counters.set(name, counter);
    return counter;
  }

  async function log(): Promise<void> {
    timer = undefined;
    const counted = counters;
    counters = new Map();
    if (counted.size === 0) return;
    try {
      await store.note([...counted.values()].map((counter) => actOfCounter(counter, now)));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      for (const [name, counter] of counted) {
        counter.count += counters.get(name)?.count ?? 0;
        counters.set(name, counter);
      }
      begin();
    }
  }

  function begin(): void {
    timer ??= setTimeout(() => {
      logging = log();
    }, everyMs).unref();
  }

  return {
    count(who, why) {
      counterOf(who, why).count += 1;
      begin();
    },
    async stop() {
      await logging;
      await log();
      clearTimeout(timer);
    },
  };
}

function actOfCounter({ actor, address, why, since, count }: Counter, now: () => number): Act {
  const detail = { reason: why, count, since: new Date(since).toISOString() };
  return actOf('access.refused', { detail }, { now, asker: { actor, address, requestId: undefined } });
}
