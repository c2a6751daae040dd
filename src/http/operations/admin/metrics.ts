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
  .meta({ id: 'metric', description: 'A histogram has `bounds`, and `distributions` of counts and a sum.' });

/** What all processes of a service measure together, for whoever has no Prometheus at hand. */
export const METRICS_OPERATIONS = [
  adminOperation({
    name: 'get-metrics',
    method: 'GET',
    path: '/metrics',
    summary: 'What all processes of the service measure, together, at this moment.',
    description: 'Requests are counted where the service has `--metrics-port`.',
    success: {
      status: 200,
      description: 'The figures by name, as the listener for Prometheus has them.',
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
