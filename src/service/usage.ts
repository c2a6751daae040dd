import { openGrantNotes } from '../audit/grants.ts';
import { openRefusals } from '../audit/refusals.ts';
import { openUses } from '../auth/tokens/uses.ts';
import type { Act } from '../domain/act.ts';
import type { Clock } from '../domain/id.ts';
import { openListener } from '../http/server/listener.ts';
import type { Log } from '../platform/log.ts';
import type { Engine } from '../store/open.ts';

/** What is kept of those who ask, whatever they ask: who got a token or used one, and who was refused. */
export function openCounting({ access, log: entries }: Engine, log: Log, clock: Clock) {
  const uses = openUses(access, clock);
  const refusals = openRefusals(entries, clock);
  const grants = openGrantNotes(entries, clock, ({ waiting, dropped }) =>
    log.write({ event: 'entries_waiting', count: waiting, lost: dropped }),
  );
  return {
    granted(act: Act): Promise<void> {
      if (act.object !== undefined) uses.note(act.object);
      return grants.note(act);
    },
    listener: openListener({ used: uses.note, refused: refusals.count }),
    async stop() {
      await Promise.all([uses.stop(), refusals.stop(), grants.stop()]);
    },
  };
}
