import { isLoopbackHost } from '../../domain/loopback.ts';
import type { Stage } from '../pipeline/call.ts';
import { faultReply } from './reply.ts';

const FOREIGN_ORIGIN = faultReply('foreign_origin');
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Accepts only requests from pages of this service. Browsers send `Origin`, and most of them `Sec-Fetch-Site`, and no script
 * can change them.
 */
export function requireOwnOrigin(baseUrl: string): Stage {
  const origins = ownOrigins(baseUrl);
  return (call) => {
    const { headers } = call.request;
    const site = headers.get('sec-fetch-site');
    const isOwn = origins.has(headers.get('origin') ?? '') && (site === null || site === 'same-origin');
    if (isOwn) return undefined;
    call.refused = 'foreign origin';
    call.address();
    return FOREIGN_ORIGIN;
  };
}

/** The origin of the base URL; for a loopback address, the origins of all its names. */
function ownOrigins(baseUrl: string): ReadonlySet<string> {
  const { origin, hostname, protocol, port } = new URL(baseUrl);
  if (!isLoopbackHost(hostname)) return new Set([origin]);
  const suffix = port === '' ? '' : `:${port}`;
  return new Set([origin, ...LOOPBACK_NAMES.map((name) => `${protocol}//${name}${suffix}`)]);
}
