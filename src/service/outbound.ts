import { type Settings, targetRules } from '../config/parse.ts';
import type { Log } from '../platform/log.ts';

/** Writers of profiles choose names: a line for each would let them fill a disk. */
const REPORT_MS = 1_000;

/** Where requests may be sent. A name that resolves elsewhere is logged. */
export function outboundRules(settings: Settings, log?: Pick<Log, 'write'>) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  return {
    offline: settings.offline,
    ...targetRules(settings),
    onRefusedAddress(host: string, address: string): void {
      if (performance.now() - reportedAt < REPORT_MS) return;
      reportedAt = performance.now();
      log?.write({ event: 'private_address_refused', host, address });
    },
  };
}
