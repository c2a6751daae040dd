import { z } from 'zod';
import { link } from '../../openapi/schemas.ts';
import { adminOperation } from './operation.ts';

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
      schema: z
        .strictObject({
          data: z.strictObject({ type: z.literal('metrics'), families: z.array(family) }),
          links: z.strictObject({ self: link }),
        })
        .meta({ id: 'metrics' }),
      example: {
        data: {
          type: 'metrics',
          families: [
            {
              name: 'authrealm_requests_in_flight',
              help: 'Requests in progress.',
              kind: 'gauge',
              across: 'sum',
              samples: [{ labels: {}, value: 1 }],
            },
          ],
        },
        links: { self: 'https://idp.example/admin/v1/metrics' },
      },
    },
    async handle({ url }, { metrics }) {
      return {
        body: { data: { type: 'metrics', families: await metrics() }, links: { self: url('/metrics') } },
      };
    },
  }),
] as const;
