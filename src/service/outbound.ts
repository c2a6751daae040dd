import { type Settings, targetRules } from '../config/parse.ts';
import type { Log } from '../platform/log.ts';

/** Where requests may be sent. A name that resolves elsewhere is logged. */
export function outboundRules(settings: Settings, log?: Pick<Log, 'write'>) {
  return {
    offline: settings.offline,
    ...targetRules(settings),
    onRefusedAddress(host: string, address: string): void {
      log?.write({ event: 'private_address_refused', host, address, count: 1 });
    },
  };
}
