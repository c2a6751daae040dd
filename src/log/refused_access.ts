import type { Uuid } from '../model/id.ts';
import { clientSubnet, type IpAddress } from '../model/ip_address.ts';
import { LIMITS } from '../model/limits.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import type { RefusedAccess } from '../model/log/refused_access.ts';
import type { CounterLog } from './counters.ts';

/** The refused caller: an authenticated client, else an address. */
export interface RefusedCaller {
  readonly clientId: string | undefined;
  /** The existing client whose credentials were rejected, or whose ID alone was not enough. */
  readonly target?: string | undefined;
  readonly address: IpAddress | undefined;
}

/** The actor of callers without a valid token. */
const NOBODY = 'nobody';

/** Both functions return what `CounterLog.add` does. */
export function openRefusedAccessLog({ add }: Pick<CounterLog, 'add'>, now: () => number) {
  return {
    /**
     * Counts by client or address and reason. Wrong credentials are counted by the client they name, and for all unknown clients
     * together, whatever their addresses: an attacker may use a thousand of both.
     */
    count({ clientId, target, address }: RefusedCaller, reason: RefusedAccess) {
      const site = clientId === undefined && address !== undefined ? clientSubnet(address) : undefined;
      const caller = { actor: clientId ?? NOBODY, address: site, requestId: undefined };
      const object = target === undefined ? {} : { object: target };
      const entry = createAuditEntry('access.refused', { ...object, detail: { reason } }, { now, caller });
      const place = reason === 'bad credentials' ? undefined : site;
      return add([caller.actor, target, place, reason].join(' '), entry, LIMITS.refusalsCountedMax);
    },
    /** Counts requests whose password was not checked because a budget was exhausted, by realm. */
    countThrottled(realm: Uuid, address: IpAddress | undefined) {
      const site = address === undefined ? undefined : clientSubnet(address);
      const caller = { actor: NOBODY, address: site, requestId: undefined };
      const entry = createAuditEntry('sign-in.throttled', { realm, detail: {} }, { now, caller });
      return add(realm, entry, LIMITS.refusalsCountedMax);
    },
  };
}
