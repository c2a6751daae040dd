import { EXPOSITION_TYPE, exposition } from '../../metrics/exposition.ts';
import type { Snapshot } from '../../metrics/family.ts';
import type { Route } from '../server/router.ts';

/** What the listener of the metrics answers: one page, for whoever reaches it. */
export function metricsRoutes(snapshot: () => Promise<Snapshot>): readonly Route[] {
  return [
    {
      pattern: '/metrics',
      isUncounted: true,
      answers: {
        async GET() {
          const headers = { 'Content-Type': EXPOSITION_TYPE, 'Cache-Control': 'no-store' };
          return { status: 200, headers, body: exposition(await snapshot()) };
        },
      },
    },
  ];
}
