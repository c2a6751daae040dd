import { Fault } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isClientId } from '../../domain/principal.ts';
import type { AuthStore } from '../port.ts';

/** Records which clients requested or used a token. */
export interface ClientUsage {
  record(clientId: string): void;
  /** Writes what is pending, for the last time. */
  stop(): Promise<void>;
}

/**
 * Collects active clients in memory and stores them once a minute. It runs on every lookup: a comparison for
 * the same client as before, a set insertion for another. If the database accepts no writes it retries a minute
 * later. Keeps no process alive.
 */
export function openClientUsage(
  store: Pick<AuthStore, 'recordClientUsage'>,
  { now }: Pick<Clock, 'now'>,
  everyMs: number = LIMITS.clientUseSaveMs,
): ClientUsage {
  let active = new Set<string>();
  let last: string | undefined;
  let flushing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    flushing = flush();
  }, everyMs);
  timer.unref();

  async function flush(): Promise<void> {
    const seen = active;
    if (seen.size === 0) return;
    active = new Set();
    last = undefined;
    try {
      await store.recordClientUsage([...seen], now());
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      for (const clientId of seen) active.add(clientId);
    }
  }

  return {
    record(clientId) {
      if (clientId === last) return;
      last = clientId;
      if (isClientId(clientId)) active.add(clientId);
    },
    async stop() {
      clearInterval(timer);
      await flushing;
      await flush();
    },
  };
}
