import type { AuthStore } from '../auth/port.ts';
import { createConsoleLink } from '../auth/sessions/console_links.ts';
import { SCOPES } from '../domain/principal.ts';
import { faultReply } from '../http/server/reply.ts';
import type { Route } from '../http/server/router.ts';
import { systemClock } from '../platform/clock.ts';

/** Where the demo lets people in. */
export const DEMO_DOOR = '/demo';

/**
 * Leads to the console, signed in: with a code of its own each time, for all that can be done, because what is there was made by
 * this process and goes with it. Only who asks for this machine by its own name gets one: a page elsewhere whose name leads
 * here is of another.
 */
export function demoDoor(store: Pick<AuthStore, 'insertConsoleLink'>, url: string): Route {
  const { port } = new URL(url);
  // Nobody names port 80.
  const behind = port === '' ? '' : `:${port}`;
  const hosts = new Set(['127.0.0.1', 'localhost'].map((name) => name + behind));
  return {
    pattern: DEMO_DOOR,
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
