import { z } from 'zod';
import { LIMITS } from '../../../domain/limits.ts';
import { link, timestampSchema } from '../../openapi/schemas.ts';
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

const STEP_SECONDS = LIMITS.metricsHistoryStepMs / 1_000;

const figure = z.number().optional();
const historyPoint = z
  .strictObject({
    at: timestampSchema,
    lookups_per_second: figure,
    requests_per_second: figure,
    lookup_ms_p50: figure,
    lookup_ms_p95: figure,
    lookup_ms_p99: figure,
    request_ms_p99: figure,
    client_errors_per_second: figure,
    server_errors_per_second: figure,
    commits_per_second: figure,
    cpus: figure,
    event_loop_delay_ms_p99: figure,
    webhook_lag_seconds: figure,
  })
  .meta({ id: 'metrics_history_point', description: 'A figure is absent if nothing happened.' });

/** The metrics of all processes of the service, for callers without Prometheus. */
export const METRICS_OPERATIONS = [
  adminOperation({
    name: 'get-metrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Get the current metrics of all processes of the service together.',
    description: 'Request metrics need `--metrics-port`.',
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
        body: { data: { type: 'metrics', families: await metrics.read() }, links: { self: url('/metrics') } },
      };
    },
  }),
  adminOperation({
    name: 'get-metrics-history',
    method: 'GET',
    path: '/metrics/history',
    summary: 'Get rates and latencies of the last hour, over all processes of the service.',
    description: 'They are kept in memory since the service started. Request metrics need `--metrics-port`.',
    success: {
      status: 200,
      description: 'The points, oldest first. A point without rates is a gap.',
      schema: z
        .strictObject({
          data: z.strictObject({
            type: z.literal('metrics_history'),
            at: timestampSchema.meta({ description: 'The time of the service when it answered.' }),
            step_seconds: z.int().meta({ description: 'The time between two points.' }),
            points: z.array(historyPoint).max(LIMITS.metricsHistoryPointsMax),
          }),
          links: z.strictObject({ self: link }),
        })
        .meta({ id: 'metrics_history' }),
      example: {
        data: {
          type: 'metrics_history',
          at: '2026-01-31T09:00:10.000Z',
          step_seconds: STEP_SECONDS,
          points: [{ at: '2026-01-31T09:00:00.000Z', lookups_per_second: 120, lookup_ms_p99: 1.2 }],
        },
        links: { self: 'https://idp.example/admin/v1/metrics/history' },
      },
    },
    async handle({ url }, { metrics, clock }) {
      const points = (await metrics.readHistory()).map(({ at, ...figures }) => ({
        at: new Date(at).toISOString(),
        ...figures,
      }));
      const at = new Date(clock.now()).toISOString();
      const data = { type: 'metrics_history', at, step_seconds: STEP_SECONDS, points };
      return { body: { data, links: { self: url('/metrics/history') } } };
    },
  }),
] as const;
