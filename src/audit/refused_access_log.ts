import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock, Uuid } from '../domain/id.ts';
import { clientSubnet, type IpAddress } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import type { RefusedAccess } from '../domain/refused_access.ts';
import type { LogStore } from './port.ts';

/** The refused caller: an authenticated client, else an address. */
export interface RefusedCaller {
  readonly clientId: string | undefined;
  /** The existing client whose secret was wrong. */
  readonly target?: string | undefined;
  readonly address: IpAddress | undefined;
}

export interface RefusedAccessLog {
  count(caller: RefusedCaller, reason: RefusedAccess): void;
  /** Counts a request whose password was not checked because a budget was exhausted, in one entry for its realm. */
  countThrottled(realm: Uuid, address: IpAddress | undefined): void;
  /** Writes the counts for the last time. */
  stop(): Promise<void>;
}

interface Counter {
  readonly actor: string;
  /** Of throttled sign-ins, which are counted by realm alone. */
  readonly realm: Uuid | undefined;
  readonly target: string | undefined;
  /** Part of the key; undefined where addresses are counted together. */
  readonly address: string | undefined;
  /** The first addresses of those counted together. */
  readonly addresses: readonly string[];
  /** Undefined for throttled sign-ins. */
  readonly reason: RefusedAccess | undefined;
  readonly since: number;
  readonly count: number;
}

/** The actor of callers without a valid token. */
const NOBODY = 'nobody';
/** The actor of all callers beyond the number of counters. */
const OTHERS = 'others';

/**
 * Counts refused access by client or address and reason, and logs each count once a minute, so that a million attempts write
 * one entry. Wrong credentials are counted by the client they name, and for all unknown clients together, whatever their
 * addresses: an attacker may use a thousand of both. Beyond the maximum number of counters callers are counted together. It
 * continues to count while nothing can be written. Keeps no process alive.
 */
export function openRefusedAccessLog(
  store: Pick<LogStore, 'append'>,
  { now, mintId }: Pick<Clock, 'now' | 'mintId'>,
  everyMs: number = LIMITS.refusalLogMs,
): RefusedAccessLog {
  let counters = new Map<string, Counter>();
  /** Entries whose write has an unknown outcome: they are appended again unchanged, before newer ones. */
  let unconfirmed: readonly AuditEntry[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let logging: Promise<void> = Promise.resolve();

  function add(counted: Counter): void {
    const ownKey = counterKey(counted);
    const isRoom = counters.has(ownKey) || counters.size < LIMITS.refusalsCountedMax;
    const counter = isRoom
      ? counted
      : { ...counted, actor: OTHERS, realm: undefined, target: undefined, address: undefined, addresses: [] };
    const name = counterKey(counter);
    const earlier = counters.get(name);
    if (!earlier) {
      counters.set(name, counter);
      return;
    }
    const addresses = mergeAddresses(earlier.addresses, counter.addresses);
    counters.set(name, { ...earlier, addresses, count: earlier.count + counter.count });
  }

  async function log(): Promise<void> {
    timer = undefined;
    let counted: typeof counters = new Map();
    let auditEntries: readonly AuditEntry[] = unconfirmed;
    try {
      if (auditEntries.length > 0) await store.append(auditEntries);
      unconfirmed = [];
      counted = counters;
      counters = new Map();
      auditEntries = [...counted.values()].map((counter) => ({
        ...refusedAccessEntry(counter, now),
        id: mintId(),
      }));
      if (auditEntries.length > 0) await store.append(auditEntries);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (error.code === 'unknown_outcome') unconfirmed = auditEntries;
      else addAll(counted);
      scheduleLogging();
    }
  }

  /** Adds back counts that were not written. */
  function addAll(older: typeof counters): void {
    const newer = counters;
    counters = new Map(older);
    newer.forEach(add);
  }

  function scheduleLogging(): void {
    timer ??= setTimeout(() => {
      logging = log();
    }, everyMs).unref();
  }

  return {
    count({ clientId, target, address }, reason) {
      const site = clientId === undefined && address !== undefined ? clientSubnet(address) : undefined;
      const isByTarget = reason === 'bad credentials';
      add({
        ...{ actor: clientId ?? NOBODY, realm: undefined, target, reason, since: now(), count: 1 },
        address: isByTarget ? undefined : site,
        addresses: isByTarget && site !== undefined ? [site] : [],
      });
      scheduleLogging();
    },
    countThrottled(realm, address) {
      const addresses = address === undefined ? [] : [clientSubnet(address)];
      const counter = { actor: NOBODY, target: undefined, address: undefined, reason: undefined };
      add({ ...counter, realm, addresses, since: now(), count: 1 });
      scheduleLogging();
    },
    async stop() {
      await logging;
      await log();
      clearTimeout(timer);
    },
  };
}

function counterKey({ actor, realm, target, address, reason }: Counter): string {
  return `${actor} ${realm ?? ''} ${target ?? ''} ${address ?? ''} ${reason}`;
}

function refusedAccessEntry(
  { actor, realm, target, address, addresses, reason, since, count }: Counter,
  now: () => number,
): AuditEntry {
  const [first, ...more] = addresses;
  const detail = {
    ...(reason === undefined ? {} : { reason }),
    ...{ count, since: new Date(since).toISOString() },
    ...(more.length > 0 ? { addresses } : {}),
  };
  return createAuditEntry(
    reason === undefined ? 'sign-in.throttled' : 'access.refused',
    {
      ...(target === undefined ? {} : { object: target }),
      ...(realm === undefined ? {} : { realm }),
      detail,
    },
    {
      now,
      caller: { actor, address: more.length > 0 ? undefined : (address ?? first), requestId: undefined },
    },
  );
}

/** The distinct addresses of both; at most `LIMITS.addressesLoggedMax`. */
export function mergeAddresses(some: readonly string[], more: readonly string[]): readonly string[] {
  const added = more.filter((address) => !some.includes(address));
  return added.length === 0 ? some : [...some, ...added].slice(0, LIMITS.addressesLoggedMax);
}
