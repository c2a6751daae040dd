import type { Ambient, Uuid } from '../domain/id.ts';
import { beginTrace, type TraceContext, traceHeaders } from '../domain/trace_context.ts';
import { DISCOVERY_FAILURES, deriveIssuer, openDiscovery, openPlaces } from './discovery.ts';
import { openGuardedFetch } from './guarded_fetch.ts';

interface LearnerSettings {
  readonly offline: boolean;
  readonly allowLoopbackDiscovery: boolean;
}

/** Who is asked for the issuer of a new OIDC profile: the provider, or nobody but its URL. */
export function openLearner({ offline, allowLoopbackDiscovery }: LearnerSettings, ambient: Ambient) {
  const places = openPlaces();
  const discover = offline
    ? deriveIssuer
    : openDiscovery(openGuardedFetch({ allowLoopback: allowLoopbackDiscovery }), places);
  return {
    async learn(url: string, realm: Uuid, trace: TraceContext = beginTrace(ambient)) {
      const found = await discover(url, realm, traceHeaders(trace, ambient));
      if (found.kind === 'found') return found;
      return { refusal: DISCOVERY_FAILURES[found.kind], isPassing: found.kind === 'unreachable' };
    },
    discoveries: places.taken,
  };
}
