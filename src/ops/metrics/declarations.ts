import { LIMITS } from '../../model/limits.ts';
import type { Family, FamilyHeader, SampleFamily } from './family.ts';

/** A metric family without its values; `help` is its HELP line. */
export interface MetricDeclaration extends FamilyHeader {
  readonly kind: Family['kind'];
  /** Of a gauge: how the values of several processes are combined; by default they are summed, as those of the others. */
  readonly across?: SampleFamily['across'];
  /** Default: none. */
  readonly labels?: readonly string[];
  /** What docs/reference/metrics.md adds to it, with links as that page has them. */
  readonly details?: string;
}

/** The interval of the timer whose delay is measured. */
export const EVENT_LOOP_SAMPLE_MS = 100;

/** Every metric, in the order of docs/reference/metrics.md. */
export const METRICS = {
  requests: {
    kind: 'counter',
    name: 'authrealm_requests_total',
    labels: ['method', 'route', 'status'],
    help: 'Requests answered.',
    details: '`status` is `2xx`, `3xx`, `4xx` or `5xx`.',
  },
  faults: {
    kind: 'counter',
    name: 'authrealm_faults_total',
    labels: ['method', 'route', 'code'],
    help: 'Requests answered with a fault.',
    details: 'See [faults](faults.md).',
  },
  requestDuration: {
    kind: 'histogram',
    name: 'authrealm_request_duration_seconds',
    labels: ['method', 'route'],
    help: 'Time from the headers of a request to its answer.',
  },
  requestsInFlight: {
    kind: 'gauge',
    name: 'authrealm_requests_in_flight',
    help: 'Requests in progress.',
  },
  errors: {
    kind: 'counter',
    name: 'authrealm_errors_total',
    labels: ['cause'],
    help: 'Errors behind answers with status 500 and above, by cause as in the log.',
    details: 'See [database errors](../guides/troubleshooting.md#database-errors).',
  },
  commits: {
    kind: 'counter',
    name: 'authrealm_commits_total',
    help: 'Write transactions committed.',
  },
  commitRetries: {
    kind: 'counter',
    name: 'authrealm_commit_retries_total',
    help: 'Commits delayed or retried because of lock contention.',
  },
  queueLength: {
    kind: 'gauge',
    name: 'authrealm_queue_length',
    labels: ['queue'],
    help: 'Jobs waiting.',
    details: '`queue` is `writes`, `lists`, `hashes` or `checks` (of passwords).',
  },
  queueCapacity: {
    kind: 'gauge',
    name: 'authrealm_queue_capacity',
    labels: ['queue'],
    help: 'Jobs that may wait before the next one is rejected.',
    details:
      'Of `checks` all places, with the one in progress; those of one client, address or username are fewer: watch ' +
      '`authrealm_password_checks_total` with `outcome="overloaded"`.',
  },
  queueInProgress: {
    kind: 'gauge',
    name: 'authrealm_queue_in_progress',
    labels: ['queue'],
    help: 'Jobs in progress outside of the event loop.',
    details: '`queue` is `lists`, `hashes`, `checks` or `discoveries`.',
  },
  passwordChecks: {
    kind: 'counter',
    name: 'authrealm_password_checks_total',
    labels: ['mechanism', 'outcome'],
    help: 'Requests to check a password.',
    details:
      '`mechanism` is `password` (account tokens) or `password_check`; `outcome` is `right`, `wrong`, `throttled` or `overloaded`. An unknown username is `wrong`.',
  },
  passwordCheckDuration: {
    kind: 'histogram',
    name: 'authrealm_password_check_duration_seconds',
    labels: ['mechanism'],
    help: 'Time to check a password, with its wait in the queue; without throttled and rejected requests.',
  },
  signIns: {
    kind: 'counter',
    name: 'authrealm_sign_ins_total',
    labels: ['mechanism', 'outcome'],
    help: 'Sign-ins without a password check.',
    details:
      '`mechanism` is `oidc`, `self_signup` (both account tokens) or `oidc_check`; `outcome` is `known`, `linked`, `created`, `refused`, ' +
      '`throttled`, `unavailable` (the provider) or `overloaded`.',
  },
  signInDuration: {
    kind: 'histogram',
    name: 'authrealm_sign_in_duration_seconds',
    labels: ['mechanism'],
    help: 'Duration of these sign-ins, with requests to a provider; without throttled and rejected requests.',
  },
  eventLoopDelay: {
    kind: 'histogram',
    name: 'authrealm_event_loop_delay_seconds',
    help: `Delay of a timer that is due every ${EVENT_LOOP_SAMPLE_MS} ms.`,
  },
  writeAheadLog: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_write_ahead_log_bytes',
    help: 'Size of the write-ahead log of SQLite.',
    details: `More than ${LIMITS.writeAheadLogBytesMax / 1_048_576} MiB for long: a program keeps a transaction open.`,
  },
  checkpointAge: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_checkpoint_age_seconds',
    help: 'Time since checkpoints and erasures were last written to the checkpoint file.',
    details: 'More than a minute: a disk is full, for example. See [checkpoints](../audit.md#checkpoints).',
  },
  backupAge: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_backup_age_seconds',
    help: 'Time since the last backup by authrealm backup was taken.',
    details: 'Of a SQLite file, from its first backup on.',
  },
  certificateExpiry: {
    kind: 'gauge',
    across: 'min',
    name: 'authrealm_certificate_expiry_seconds',
    help: 'Time until the TLS certificate that is served expires.',
    details: 'With `--tls-cert`.',
  },
  accessTableAge: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_access_table_age_seconds',
    help: 'Age of the clients and keys in memory; grows while there are no requests.',
  },
  changeStreams: {
    kind: 'gauge',
    name: 'authrealm_change_streams',
    help: 'Open change streams.',
    details: 'See [streams](../feed.md#streams).',
  },
  webhookLag: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_webhook_lag_seconds',
    labels: ['webhook'],
    help: 'Age of the oldest change not yet delivered; 0 if none.',
  },
  webhookLaggingRealms: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_webhook_lagging_realms',
    labels: ['webhook'],
    help: `Realms with failed messages that are retried; at most ${LIMITS.webhookLagCountedMax}.`,
  },
  webhookDeadLetters: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_webhook_dead_letters',
    labels: ['webhook'],
    help: `Dead letters; at most ${LIMITS.webhookLagCountedMax}.`,
  },
  webhookDeliveries: {
    kind: 'counter',
    name: 'authrealm_webhook_deliveries_total',
    labels: ['webhook', 'outcome'],
    help: 'Delivery attempts.',
    details: '`outcome` is `delivered`, `refused`, `unreachable` or `expired`.',
  },
  webhookDeliveryDuration: {
    kind: 'histogram',
    name: 'authrealm_webhook_delivery_duration_seconds',
    labels: ['webhook'],
    help: 'Duration of a delivery attempt.',
  },
  processes: {
    kind: 'gauge',
    name: 'authrealm_processes',
    labels: ['state'],
    help: 'Serving processes.',
    details:
      '`state` is `responding`, or `unresponsive` without metrics in time. Only with `--processes 2` or more.',
  },
  processExits: {
    kind: 'counter',
    name: 'authrealm_process_exits_total',
    help: 'Serving processes that exited.',
    details: 'Only with `--processes 2` or more.',
  },
  build: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_build_info',
    labels: ['version', 'runtime'],
    help: 'Always 1; release and runtime are labels.',
  },
  engine: {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_engine_info',
    labels: ['engine'],
    help: 'Always 1; the database engine is a label.',
    details: '`engine` is `sqlite` or `postgres`.',
  },
  startTime: {
    kind: 'gauge',
    across: 'min',
    name: 'process_start_time_seconds',
    help: 'Start time of the service, in seconds since the Unix epoch.',
  },
  cpu: {
    kind: 'counter',
    name: 'process_cpu_seconds_total',
    help: 'CPU time of all serving processes.',
  },
  residentMemory: {
    kind: 'gauge',
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of all serving processes; shared memory is counted once for each.',
  },
} as const satisfies Record<string, MetricDeclaration>;
