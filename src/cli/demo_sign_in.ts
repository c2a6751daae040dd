import type { AuthStore } from '../auth/port.ts';
import { createConsoleLink } from '../auth/sessions/console_links.ts';
import { SCOPES } from '../domain/principal.ts';
import { faultReply } from '../http/server/reply.ts';
import type { Route } from '../http/server/router.ts';
import { systemClock } from '../platform/clock.ts';

/** The path that signs in to the console of the demo. */
export const DEMO_SIGN_IN_PATH = '/demo';

/**
 * Redirects to the console with a new sign-in code that grants every scope: the data belongs to this process and is deleted with
 * it. The Host header must name this machine, so a page of another site cannot obtain a code by DNS rebinding.
 */
export function demoSignIn(store: Pick<AuthStore, 'insertConsoleLink'>, url: string): Route {
  const { port } = new URL(url);
  // Browsers leave port 80 out of the Host header.
  const portSuffix = port === '' ? '' : `:${port}`;
  const hosts = new Set(['127.0.0.1', 'localhost'].map((name) => name + portSuffix));
  return {
    pattern: DEMO_SIGN_IN_PATH,
    isOwn: true,
    answers: {
      async GET({ request }) {
        if (!hosts.has(request.headers.get('host') ?? '')) return faultReply('foreign_host');
        const rights = { scopes: new Set(SCOPES), realms: '*' } as const;
        const { code } = await createConsoleLink(store, { label: 'demo', ...rights }, systemClock);
        const headers = {
          Location: `/console#code=${code}`,
          'Cache-Control': 'no-store',
          'Referrer-Policy': 'no-referrer',
        };
        return { status: 303, headers, body: null };
      },
    },
  };
}
