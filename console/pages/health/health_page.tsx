import { useFetch } from '../../api/use_fetch.ts';
import { PageHead } from '../../layout/page.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { duration, gaugeOf, labelOf, type MetricsReading, number, readMetrics, totalOf } from './metrics.ts';

/** The health of the service, over all its processes. */
export function HealthPage() {
  const fetched = useFetch(readMetrics, []);
  return (
    <>
      <PageHead
        title="Health"
        actions={
          <button type="button" class="button" onClick={fetched.reload}>
            <Icon name="history" /> Refresh
          </button>
        }
      />
      <Loaded fetched={fetched}>
        {(reading) => (
          <>
            <Service reading={reading} />
            {!reading.families.has(REQUESTS) && (
              <p class="note note-warn">
                <Icon name="warning" />
                <span>
                  This service does not record request metrics. Start it with <code>--metrics</code> to see
                  requests and errors here.
                </span>
              </p>
            )}
            <Values reading={reading} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Service({ reading }: { readonly reading: MetricsReading }) {
  const engine = labelOf(reading, 'authrealm_engine_info', 'engine');
  const started = gaugeOf(reading, 'process_start_time_seconds');
  const answering = gaugeOf(reading, 'authrealm_processes');
  const streams = gaugeOf(reading, 'authrealm_change_streams');
  const memory = gaugeOf(reading, 'process_resident_memory_bytes');
  return (
    <section class="card" aria-label="The service">
      <dl class="tiles">
        <Fact label="Engine">{ENGINES[engine ?? ''] ?? engine}</Fact>
        <Fact label="Release">{labelOf(reading, 'authrealm_build_info', 'version')}</Fact>
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

const REQUESTS = 'authrealm_requests_total';

type Read = (reading: MetricsReading) => number | undefined;

const gauge =
  (name: string): Read =>
  (reading) =>
    gaugeOf(reading, name);
const total =
  (name: string, status?: string): Read =>
  (reading) =>
    totalOf(reading, name, (labels) => status === undefined || labels.status === status);

/** Counters count from the start of the service. */
const ROWS: readonly (readonly [label: string, read: Read, format: (value: number) => string])[] = [
  ['Webhook lag', gauge('authrealm_webhook_lag_seconds'), duration],
  ['Dead letters, largest target', gauge('authrealm_webhook_dead_letters'), number],
  ['Pending requests', gauge('authrealm_requests_in_flight'), number],
  ['Age of last audit checkpoint', gauge('authrealm_checkpoint_age_seconds'), duration],
  ['Requests since the start', total(REQUESTS), number],
  ['Client errors (4xx) since the start', total(REQUESTS, '4xx'), number],
  ['Server errors (5xx) since the start', total(REQUESTS, '5xx'), number],
  ['Commits since the start', total('authrealm_commits_total'), number],
  ['CPU time since the start', total('process_cpu_seconds_total'), duration],
];

/** The current values as a table. */
function Values({ reading }: { readonly reading: MetricsReading }) {
  return (
    <section class="section" aria-label="Latest metrics">
      <div class="card-head">
        <h2>Latest metrics</h2>
        <p class="faint small">
          <Timestamp at={reading.at} />
        </p>
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
            {ROWS.map(([label, read, format]) => {
              const value = read(reading);
              return (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td>{value === undefined ? <span class="faint">none</span> : format(value)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
