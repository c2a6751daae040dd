import { z } from 'zod';
import type { Snapshot } from '../../../ops/metrics/family.ts';
import { adminOperation, singleAnswer } from './operation.ts';

const labels = z.looseObject({});
const family = z
  .looseObject({
    name: z.string(),
    help: z.string(),
    kind: z.enum(['counter', 'gauge', 'histogram']),
    samples: z.array(z.strictObject({ labels, value: z.number() })).optional(),
  })
  .meta({
    id: 'metric',
    description: 'A histogram has `bounds` and `distributions`, each with counts and a sum.',
  });

const FAMILY_EXAMPLE = {
  name: 'authrealm_requests_in_flight',
  help: 'Requests in progress.',
  kind: 'gauge',
  across: 'sum',
  samples: [{ labels: {}, value: 1 }],
} as const;
const METRICS = singleAnswer(
  'metrics',
  { type: 'metrics', families: z.array(family) },
  { families: [FAMILY_EXAMPLE] as Snapshot },
  () => '/metrics',
);

/** The metrics of all processes of the service, for callers without Prometheus. */
export const METRICS_OPERATIONS = [
  adminOperation({
    name: 'get-metrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Get the current metrics of all processes of the service together.',
    description: 'Request metrics need `--metrics`.',
    success: {
      ...METRICS,
      status: 200,
      description: 'The metric families, as on the Prometheus endpoint.',
    },
    handle: async (_, { metrics }) => ({ families: await metrics() }),
  }),
] as const;
