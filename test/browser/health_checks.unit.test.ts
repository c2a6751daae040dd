import { expect, test } from 'bun:test';
import { runCheck } from '../../console/pages/health/checks.ts';
import { readHealthChecks } from '../../scripts/health_checks.ts';
import type { Distribution, Family, Sample } from '../../src/ops/metrics/family.ts';

/** The checks of the Health page on metrics just below and just above the limits of the alert rules. */

const CHECKS = readHealthChecks();
const HOUR_MS = 3_600_000;

interface Metrics {
  readonly [metric: string]: readonly Sample[] | readonly Distribution[];
}

/** Of a service that started at 0. */
function reading(at: number, metrics: Metrics) {
  const families = Object.entries(metrics).map(([name, values]): [string, Family] => {
    const isHistogram = values.some((value) => 'counts' in value);
    const header = { name, help: '' };
    return isHistogram
      ? [
          name,
          { ...header, kind: 'histogram', bounds: [0.1, 0.2, 1], distributions: values as Distribution[] },
        ]
      : [name, { ...header, kind: 'gauge', samples: values as Sample[] }];
  });
  return { at, families: new Map(families) };
}

const sample = (value: number, labels = {}): Sample => ({ value, labels });
const LOOKUP = { method: 'GET', route: '/v2/:realm_id/user-authentication-oidc-profile-info/:id' };
const slow = (counts: readonly number[], labels = {}): Distribution => ({ labels, counts, sum: 0 });

/** Metrics of the first hour within the limit of a check, and beyond it. */
const CASES: Readonly<Record<string, readonly [within: Metrics, beyond: Metrics]>> = {
  'Server errors': [
    { authrealm_requests_total: [sample(99, { status: '2xx' }), sample(1, { status: '5xx' })] },
    { authrealm_requests_total: [sample(98, { status: '2xx' }), sample(2, { status: '5xx' })] },
  ],
  Bug: [
    { authrealm_faults_total: [sample(9, { code: 'not_found' })] },
    { authrealm_faults_total: [sample(1, { code: 'internal' })] },
  ],
  'Database errors': [
    { authrealm_faults_total: [sample(359, { code: 'unavailable' }), sample(9, { code: 'not_found' })] },
    { authrealm_faults_total: [sample(359, { code: 'unavailable' }), sample(2, { code: 'not_ready' })] },
  ],
  'Slow lookups': [
    {
      authrealm_request_duration_seconds: [
        slow([99, 1, 0, 0], LOOKUP),
        slow([0, 0, 99, 9], { method: 'PUT' }),
      ],
    },
    { authrealm_request_duration_seconds: [slow([98, 2, 0, 0], LOOKUP)] },
  ],
  'Queue filling': [
    {
      authrealm_queue_length: [sample(50, { queue: 'lists' }), sample(0, { queue: 'writes' })],
      authrealm_queue_capacity: [sample(100, { queue: 'lists' }), sample(10, { queue: 'writes' })],
    },
    {
      authrealm_queue_length: [sample(50, { queue: 'lists' }), sample(6, { queue: 'writes' })],
      authrealm_queue_capacity: [sample(100, { queue: 'lists' }), sample(10, { queue: 'writes' })],
    },
  ],
  'Event loop busy': [
    { authrealm_event_loop_delay_seconds: [slow([0, 100, 0, 0])] },
    { authrealm_event_loop_delay_seconds: [slow([0, 0, 100, 0])] },
  ],
  'Process unresponsive': [
    { authrealm_processes: [sample(2, { state: 'responding' }), sample(0, { state: 'unresponsive' })] },
    { authrealm_processes: [sample(2, { state: 'responding' }), sample(1, { state: 'unresponsive' })] },
  ],
  'Processes exiting': [
    { authrealm_process_exits_total: [sample(8)] },
    { authrealm_process_exits_total: [sample(9)] },
  ],
  'Failed authentications': [
    { authrealm_faults_total: [sample(18_000, { code: 'unauthenticated' })] },
    { authrealm_faults_total: [sample(18_001, { code: 'invalid_client' })] },
  ],
  'Provider unavailable': [
    { authrealm_sign_ins_total: [sample(360, { outcome: 'unavailable' })] },
    { authrealm_sign_ins_total: [sample(361, { outcome: 'unavailable' })] },
  ],
  'Many sign ups': [
    { authrealm_sign_ins_total: [sample(1_001, { mechanism: 'oidc', outcome: 'created' })] },
    { authrealm_sign_ins_total: [sample(1_001, { mechanism: 'self_signup', outcome: 'created' })] },
  ],
  'Checkpoints late': [
    { authrealm_checkpoint_age_seconds: [sample(600)] },
    { authrealm_checkpoint_age_seconds: [sample(601)] },
  ],
  'Backup late': [
    { authrealm_backup_age_seconds: [sample(129_600)] },
    { authrealm_backup_age_seconds: [sample(129_601)] },
  ],
  'Certificate expires': [
    { authrealm_certificate_expiry_seconds: [sample(1_209_600)] },
    { authrealm_certificate_expiry_seconds: [sample(1_209_599)] },
  ],
  'Webhook lag': [
    { authrealm_webhook_lag_seconds: [sample(900, { webhook: 'a' })] },
    { authrealm_webhook_lag_seconds: [sample(0, { webhook: 'a' }), sample(901, { webhook: 'b' })] },
  ],
  'Webhook dead letters': [
    { authrealm_webhook_dead_letters: [sample(0)] },
    { authrealm_webhook_dead_letters: [sample(1)] },
  ],
};

test.each(CHECKS)(
  'the health check $name fails beyond the limit of its alert, and not at the limit',
  (check) => {
    const [within = {}, beyond = {}] = CASES[check.name] ?? [];
    const isBroken = (metrics: Metrics) => runCheck(check, reading(HOUR_MS, metrics), undefined).isBroken;
    expect([isBroken(within), isBroken(beyond)]).toEqual([false, true]);
    expect(runCheck(check, reading(HOUR_MS, {}), undefined)).toMatchObject({
      value: undefined,
      isBroken: false,
    });
  },
);

test('a health check of a counter counts from an earlier reading, and extrapolates nothing', () => {
  const [exits] = CHECKS.filter(({ name }) => name === 'Processes exiting');
  if (!exits) throw new Error('no such check');
  const at = (ms: number, count: number) => reading(ms, { authrealm_process_exits_total: [sample(count)] });
  const between = (ms: number, count: number) =>
    runCheck(exits, at(HOUR_MS + ms, 1_000 + count), at(HOUR_MS, 1_000)).value;
  expect(between(1_000, 2)).toBe(2);
  expect(between(2 * 900_000, 2)).toBe(1);
});
