import { expose } from '../observe/exposition.ts';
import type { Snapshot } from '../observe/family.ts';
import type { Route } from './router.ts';

/** What the listener of the metrics answers: one page, for whoever reaches it. */
export function metricsRoutes(snapshot: () => Promise<Snapshot>): readonly Route[] {
  return [
    {
      pattern: '/metrics',
      isUncounted: true,
      answers: {
        async GET() {
          const { type, text } = await expose(await snapshot());
          return { status: 200, headers: { 'Content-Type': type, 'Cache-Control': 'no-store' }, body: text };
        },
      },
    },
  ];
}
