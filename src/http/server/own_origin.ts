import type { Stage } from '../pipeline/call.ts';
import { faultReply } from './reply.ts';

const FOREIGN_ORIGIN = faultReply('foreign_origin');

/**
 * Accepts only requests from pages of this service, by the exact origin of its base URL. Browsers send `Origin`, and most of
 * them `Sec-Fetch-Site`, and no script can change them.
 */
export function requireOwnOrigin(baseUrl: string): Stage {
  const { origin } = new URL(baseUrl);
  return (call) => {
    const { headers } = call.request;
    const site = headers.get('sec-fetch-site');
    const isOwn = headers.get('origin') === origin && (site === null || site === 'same-origin');
    if (isOwn) return undefined;
    call.refused = 'foreign origin';
    call.address();
    return FOREIGN_ORIGIN;
  };
}
