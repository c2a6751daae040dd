import { z } from 'zod';
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
};

/** The metrics of all processes of the service, for callers without Prometheus. */
export const METRICS_OPERATIONS = [
  adminOperation({
    name: 'get-metrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Get the current metrics of all processes of the service together.',
    description: 'Request metrics need `--metrics`.',
    success: {
      status: 200,
      description: 'The metric families, as on the Prometheus endpoint.',
      ...singleAnswer(
        'metrics',
        { type: z.literal('metrics'), families: z.array(family) },
        { type: 'metrics', families: [FAMILY_EXAMPLE] },
        '/metrics',
      ),
    },
    async handle({ url }, { metrics }) {
      return {
        body: { data: { type: 'metrics', families: await metrics() }, links: { self: url('/metrics') } },
      };
    },
  }),
] as const;
