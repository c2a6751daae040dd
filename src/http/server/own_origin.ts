import { isLoopbackHost } from '../../domain/loopback.ts';
import type { Stage } from '../pipeline/call.ts';
import { faultReply } from './reply.ts';

const FOREIGN_ORIGIN = faultReply('foreign_origin');
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Lets in what a page of this service asks, and nothing else: browsers say by `Origin` and, where they know how, by
 * `Sec-Fetch-Site` which page it is, and no script can say otherwise.
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

/** That of the base URL; this machine has several names for itself, which are not one origin to a browser. */
function ownOrigins(baseUrl: string): ReadonlySet<string> {
  const { origin, hostname, protocol, port } = new URL(baseUrl);
  if (!isLoopbackHost(hostname)) return new Set([origin]);
  const behind = port === '' ? '' : `:${port}`;
  return new Set([origin, ...LOOPBACK_NAMES.map((name) => `${protocol}//${name}${behind}`)]);
}
