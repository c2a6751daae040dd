import { Fault } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isClient } from '../../domain/principal.ts';
import type { AccessStore } from '../port.ts';

/** Which clients are at work: those that got or used a token. */
export interface Uses {
  note(clientId: string): void;
  /** Keeps what was noted, for the last time. */
  stop(): Promise<void>;
}

/**
 * Notes which clients are at work, and keeps it once a minute. It runs beside every lookup: of the client that came last
 * it costs a comparison, of another one a set is asked. Where nothing can be written it waits for the next minute. It keeps
 * no process alive.
 */
export function openUses(
  store: Pick<AccessStore, 'noteUses'>,
  { now }: Pick<Clock, 'now'>,
  everyMs: number = LIMITS.usesKeptEachMs,
): Uses {
  let noted = new Set<string>();
  let last: string | undefined;
  let keeping: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    keeping = keep();
  }, everyMs);
  timer.unref();

  async function keep(): Promise<void> {
    const seen = noted;
    if (seen.size === 0) return;
    noted = new Set();
    last = undefined;
    try {
      await store.noteUses([...seen], now());
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      for (const clientId of seen) noted.add(clientId);
    }
  }

  return {
    note(clientId) {
      if (clientId === last) return;
      last = clientId;
      if (isClient(clientId)) noted.add(clientId);
    },
    async stop() {
      clearInterval(timer);
      await keeping;
      await keep();
    },
  };
}
