import type { Clock, Uuid } from '../domain/id.ts';
import type { ProviderAnswer } from '../domain/provider_document.ts';
import { startTrace, type TraceContext, traceHeaders } from '../domain/trace_context.ts';
import {
  DISCOVERY_FAILURES,
  deriveIssuer,
  openDiscovery,
  openDiscoverySlots,
  openInspection,
} from './discovery.ts';
import { openGuardedFetch } from './guarded_fetch.ts';

interface LearnerSettings {
  readonly offline: boolean;
  readonly allowLoopbackDiscovery: boolean;
}

const inspectNothing = async (): Promise<ProviderAnswer> => ({ kind: 'unasked' });

/** Who is asked about the provider of an OIDC profile: the provider, or nobody but its URL. */
export function openProviderDiscovery({ offline, allowLoopbackDiscovery }: LearnerSettings, clock: Clock) {
  const places = openDiscoverySlots();
  const fetchDocument = openGuardedFetch({ allowLoopback: allowLoopbackDiscovery });
  const discover = offline ? deriveIssuer : openDiscovery(fetchDocument, places);
  const inspect = offline ? inspectNothing : openInspection(fetchDocument, places, clock);
  return {
    async learn(url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) {
      const found = await discover(url, realm, traceHeaders(trace, clock));
      if (found.kind === 'found') return found;
      return { refusal: DISCOVERY_FAILURES[found.kind], isPassing: found.kind === 'unreachable' };
    },
    inspect: (url: string, realm: Uuid, trace: TraceContext = startTrace(clock)) =>
      inspect(url, realm, traceHeaders(trace, clock)),
    discoveries: places.taken,
  };
}
