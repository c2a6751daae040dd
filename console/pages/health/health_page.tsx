import { useMemo } from 'preact/hooks';
import { countsRequests, type Figures, gaugeOf, type MetricsReading } from '../../../src/metrics/figures.ts';
import { PageHead } from '../../layout/page.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loading, ProblemNote } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { Chart, type ChartLine } from './chart.tsx';
import { duration, labelOf, milliseconds, number, rate } from './metrics.ts';
import { type Sample, usePolling } from './polling.ts';

/** The health of the service, over all its processes. */
export function HealthPage() {
  const { samples, newest, problem, restarts } = usePolling();
  const isCounted = newest === undefined || countsRequests(newest);
  const shown = useMemo(() => lastHour(samples), [samples]);
  return (
    <>
      <PageHead title="Health" />
      {problem && <ProblemNote problem={problem} />}
      {restarts > 0 && (
        <p class="note" role="status">
          <Icon name="health" /> The service restarted while this page was open
          {restarts > 1 ? `, ${restarts} times` : ''}. Gaps mark times without data.
        </p>
      )}
      {!newest && samples.length === 0 && !problem && <Loading />}
      {(newest || samples.length > 0) && (
        <>
          {newest && <Service snapshot={newest} />}
          {!isCounted && (
            <p class="note note-warn">
              <Icon name="warning" />
              <span>
                This service does not record request metrics. Start it with <code>--metrics-port</code> to see
                lookups, latency and errors here.
              </span>
            </p>
          )}
          <div class="charts">
            {(isCounted ? [...COUNTED, ...ALWAYS] : ALWAYS).map((chart) => (
              <Chart key={chart.title} {...chart} samples={shown} />
            ))}
          </div>
          <FiguresTable sample={samples.at(-1)} snapshot={newest} />
        </>
      )}
    </>
  );
}

const HOUR_SECONDS = 3_600;

function lastHour(samples: readonly Sample[]): readonly Sample[] {
  const from = (samples.at(-1)?.at ?? 0) - HOUR_SECONDS;
  return samples.filter(({ at }) => at >= from);
}

function line(
  label: string,
  color: string,
  read: (sample: Sample) => number | undefined,
  dash?: readonly number[],
): ChartLine {
  return { label, color, read, ...(dash ? { dash } : {}) };
}

const COUNTED = [
  {
    title: 'Lookups per second',
    format: rate,
    none: '–',
    lines: [
      line('lookups', '--accent', ({ figures }) => figures?.lookups_per_second),
      line('all requests', '--ink-faint', ({ figures }) => figures?.requests_per_second, [4, 4]),
    ],
  },
  {
    title: 'Lookup latency',
    format: milliseconds,
    none: 'no lookups',
    lines: [
      line('median', '--accent', ({ figures }) => figures?.lookup_ms_p50),
      line('95th percentile', '--good', ({ figures }) => figures?.lookup_ms_p95, [8, 3]),
      line('99th percentile', '--warn', ({ figures }) => figures?.lookup_ms_p99, [2, 3]),
    ],
  },
  {
    title: 'Errors per second',
    format: rate,
    none: '–',
    lines: [
      line('server errors (5xx)', '--danger', ({ figures }) => figures?.server_errors_per_second),
      line('client errors (4xx)', '--ink-faint', ({ figures }) => figures?.client_errors_per_second, [4, 4]),
    ],
  },
];

const ALWAYS = [
  {
    title: 'Webhook lag',
    format: duration,
    none: 'no webhooks',
    lines: [line('oldest undelivered change', '--accent', ({ lag }) => lag)],
  },
];

function Service({ snapshot }: { readonly snapshot: MetricsReading }) {
  const engine = labelOf(snapshot, 'authrealm_engine_info', 'engine');
  const started = gaugeOf(snapshot, 'process_start_time_seconds');
  const answering = gaugeOf(snapshot, 'authrealm_processes');
  const streams = gaugeOf(snapshot, 'authrealm_change_streams');
  const memory = gaugeOf(snapshot, 'process_resident_memory_bytes');
  return (
    <section class="card" aria-label="The service">
      <dl class="tiles">
        <Fact label="Engine">{ENGINES[engine ?? ''] ?? engine}</Fact>
        <Fact label="Release">{labelOf(snapshot, 'authrealm_build_info', 'version')}</Fact>
        <Fact label="Processes">{(answering ?? 1).toLocaleString()}</Fact>
        <Fact label="Memory">{memory === undefined ? '–' : `${Math.round(memory / 2 ** 20)} MiB`}</Fact>
        <Fact label="Change streams">{(streams ?? 0).toLocaleString()}</Fact>
        <Fact label="Started">
          {started === undefined ? '–' : <Timestamp at={new Date(started * 1_000).toISOString()} />}
        </Fact>
      </dl>
    </section>
  );
}

const ENGINES: Readonly<Record<string, string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  citus: 'PostgreSQL with Citus',
};

interface FiguresTableProps {
  readonly sample: Sample | undefined;
  readonly snapshot: MetricsReading | undefined;
}

type Row = readonly [label: string, member: keyof Figures, format: (value: number) => string];

const ROWS: readonly Row[] = [
  ['Lookups', 'lookups_per_second', rate],
  ['All requests', 'requests_per_second', rate],
  ['Lookup latency, median', 'lookup_ms_p50', milliseconds],
  ['Lookup latency, 95th percentile', 'lookup_ms_p95', milliseconds],
  ['Lookup latency, 99th percentile', 'lookup_ms_p99', milliseconds],
  ['Request latency, 99th percentile', 'request_ms_p99', milliseconds],
  ['Client errors (4xx)', 'client_errors_per_second', rate],
  ['Server errors (5xx)', 'server_errors_per_second', rate],
  ['Commits', 'commits_per_second', rate],
  ['CPUs used', 'cpus', number],
  ['Event loop delay, 99th percentile', 'event_loop_delay_ms_p99', milliseconds],
];

/** The latest metrics as a table, for screen readers and exact values. */
function FiguresTable({ sample, snapshot }: FiguresTableProps) {
  const gauges: readonly (readonly [string, string, (value: number) => string])[] = [
    ['Webhook lag', 'authrealm_webhook_lag_seconds', duration],
    ['Dead letters, largest target', 'authrealm_webhook_dead_letters', number],
    ['Pending requests', 'authrealm_requests_in_flight', number],
    ['Age of last audit checkpoint', 'authrealm_checkpoint_age_seconds', duration],
  ];
  return (
    <section class="section" aria-label="Latest metrics">
      <div class="card-head">
        <h2>Latest metrics</h2>
        {sample && (
          <p class="faint small">
            <Timestamp at={new Date(sample.at * 1_000).toISOString()} />
          </p>
        )}
      </div>
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([label, member, format]) => (
              <FigureRow key={label} label={label} value={sample?.figures?.[member]} format={format} />
            ))}
            {gauges.map(([label, name, format]) => (
              <FigureRow
                key={label}
                label={label}
                value={snapshot && gaugeOf(snapshot, name)}
                format={format}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface FigureRowProps {
  readonly label: string;
  readonly value: number | undefined;
  readonly format: (value: number) => string;
}

function FigureRow({ label, value, format }: FigureRowProps) {
  return (
    <tr>
      <th scope="row">{label}</th>
      <td>{value === undefined ? <span class="faint">none</span> : format(value)}</td>
    </tr>
  );
}
