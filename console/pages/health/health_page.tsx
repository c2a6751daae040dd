import { SCHEMA } from 'authrealm:schema';
import { useEffect, useState } from 'preact/hooks';
import type { Snapshot } from '../../../src/ops/metrics/family.ts';
import { callApi } from '../../api/call_api.ts';
import { useFetch } from '../../api/use_fetch.ts';
import type { HealthCheck } from '../../description.ts';
import { PageHead } from '../../layout/page.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { type CheckResult, runCheck } from './checks.ts';
import { gaugeOf, labelOf, type MetricsReading, START_TIME } from './metrics.ts';

async function readMetrics(signal: AbortSignal): Promise<MetricsReading> {
  const path = 'admin/v1/metrics';
  const { body } = await callApi<{ data: { families: Snapshot } }>({ path, signal, scope: 'admin' });
  return { at: Date.now(), families: new Map(body.data.families.map((family) => [family.name, family])) };
}

/** Whether the service is healthy, over all its processes. */
export function HealthPage() {
  const fetched = useFetch(readMetrics, []);
  const [first, setFirst] = useState<MetricsReading>();
  useEffect(() => setFirst((before) => before ?? fetched.answer), [fetched.answer]);
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
            <Checks reading={reading} earlier={first && isLater(reading, first) ? first : undefined} />
            {!reading.families.has('authrealm_requests_total') && (
              <p class="note note-warn">
                <Icon name="warning" />
                <span>
                  This service does not record request metrics. Start it with <code>--metrics</code> to check
                  requests and errors here.
                </span>
              </p>
            )}
            <Service reading={reading} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** Whether counters of the second reading are part of those of the first one: the service was not restarted. */
function isLater(reading: MetricsReading, first: MetricsReading): boolean {
  const startOf = (each: MetricsReading) => gaugeOf(each, START_TIME);
  return reading !== first && startOf(reading) === startOf(first);
}

interface ChecksProps {
  readonly reading: MetricsReading;
  readonly earlier: MetricsReading | undefined;
}

/** The checks, broken ones first. */
function Checks({ reading, earlier }: ChecksProps) {
  const results = SCHEMA.healthChecks.map((check) => runCheck(check, reading, earlier));
  const broken = results.filter(({ isBroken }) => isBroken);
  const others = results.filter(({ isBroken }) => !isBroken);
  return (
    <section class="card" aria-label="Checks">
      <div class="card-head">
        <h2>
          {broken.length === 0 ? 'No check fails' : `${broken.length} of ${results.length} checks fail`}
        </h2>
        <p class="faint small">
          As of <Timestamp at={new Date(reading.at).toISOString()} />, counted from{' '}
          {earlier ? <Timestamp at={new Date(earlier.at).toISOString()} /> : 'the start of the service'}
        </p>
      </div>
      <div class="table-frame">
        <table class="stacked">
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col">Now</th>
              <th scope="col">Limit</th>
              <th scope="col">Guide</th>
            </tr>
          </thead>
          <tbody>
            {[...broken, ...others].map((result) => (
              <CheckRow key={result.check.name} {...result} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function CheckRow({ check, value, isBroken }: CheckResult) {
  const { name, limit, isMinimum, advice, guide } = check;
  const page = guide.replace(/^docs\/|\.md.*$/g, '');
  return (
    <tr>
      <th scope="row">
        {name} {isBroken && <span class="badge badge-danger">fails</span>}
        {isBroken && <p class="small">{advice}</p>}
      </th>
      <td data-label="Now">{value === undefined ? 'not measured' : inUnit(check, value)}</td>
      <td data-label="Limit">{`${isMinimum ? 'at least ' : ''}${inUnit(check, limit)}`}</td>
      <td>
        {SCHEMA.files === undefined ? <code>{guide}</code> : <a href={`${SCHEMA.files}/${guide}`}>{page}</a>}
      </td>
    </tr>
  );
}

const DIGITS = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const MINUTE_SECONDS = 60;

/** With the unit of the check. */
function inUnit({ metric, per, over, seconds = 0, quantile }: HealthCheck, value: number): string {
  if (per !== undefined) return `${DIGITS.format(value * 100)} %`;
  if (over === 'increase') return `${DIGITS.format(value)} in ${seconds / MINUTE_SECONDS} min`;
  if (over === 'rate' && quantile === undefined) return `${DIGITS.format(value)} a second`;
  return metric.endsWith('_seconds') ? duration(value) : DIGITS.format(value);
}

/** Each is used from twice its length on. */
const UNITS = [
  ['days', 86_400],
  ['h', 3_600],
  ['min', MINUTE_SECONDS],
] as const;

function duration(seconds: number): string {
  const [unit, length] = UNITS.find((each) => Math.abs(seconds) >= 2 * each[1]) ?? (['s', 1] as const);
  return `${DIGITS.format(seconds / length)} ${unit}`;
}

const ENGINES: Readonly<Record<string, string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  citus: 'PostgreSQL with Citus',
};

function Service({ reading }: { readonly reading: MetricsReading }) {
  const engine = labelOf(reading, 'authrealm_engine_info', 'engine');
  const started = gaugeOf(reading, START_TIME);
  const memory = gaugeOf(reading, 'process_resident_memory_bytes');
  return (
    <section class="card" aria-label="The service">
      <dl class="tiles">
        <Fact label="Engine">{ENGINES[engine ?? ''] ?? engine}</Fact>
        <Fact label="Release">{labelOf(reading, 'authrealm_build_info', 'version')}</Fact>
        <Fact label="Processes">{(gaugeOf(reading, 'authrealm_processes') ?? 1).toLocaleString()}</Fact>
        <Fact label="Memory">{memory === undefined ? '–' : `${Math.round(memory / 2 ** 20)} MiB`}</Fact>
        <Fact label="Change streams">
          {(gaugeOf(reading, 'authrealm_change_streams') ?? 0).toLocaleString()}
        </Fact>
        <Fact label="Started">
          {started === undefined ? '–' : <Timestamp at={new Date(started * 1_000).toISOString()} />}
        </Fact>
      </dl>
    </section>
  );
}
