import { EXPOSITION_TYPE, exposition } from '../../ops/metrics/exposition.ts';
import type { Snapshot } from '../../ops/metrics/family.ts';
import type { LoopBudget } from '../pipeline/loop_budget.ts';
import type { Route } from '../server/router.ts';

/** The routes of the metrics listener: `/metrics`, without authentication. `loopBudget`: of a process that answers lookups. */
export function metricsRoutes(
  snapshot: () => Promise<Snapshot>,
  loopBudget: LoopBudget | undefined,
): readonly Route[] {
  return [
    {
      pattern: '/metrics',
      isUncounted: true,
      answers: {
        async GET() {
          await loopBudget?.turn();
          const headers = { 'Content-Type': EXPOSITION_TYPE, 'Cache-Control': 'no-store' };
          return { status: 200, headers, body: exposition(await snapshot()) };
        },
      },
    },
  ];
}
