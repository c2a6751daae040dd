import { targetRules } from './config/parse.ts';
import type { ServiceContext } from './service_context.ts';

/** Where requests may be sent. A name that resolves elsewhere is logged. */
export function outboundRules({ settings, log }: Pick<ServiceContext, 'settings' | 'log'>) {
  return {
    offline: settings.offline,
    ...targetRules(settings),
    onRefusedAddress(host: string, address: string): void {
      log.write({ event: 'private_address_refused', host, address, count: 1 });
    },
  };
}
