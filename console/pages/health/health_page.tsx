import { PageHead } from '../../layout/head.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { ProblemNote, Waiting } from '../../parts/notices.tsx';
import { Chart, type ChartLine } from './chart.tsx';
import { countsRequests, gaugeOf, labelOf } from './figures.ts';
import { FiguresTable } from './figures_table.tsx';
import { type Sample, useSampling } from './sampling.ts';
import type { Snapshot } from './snapshot.ts';
import { duration, milliseconds, rate } from './units.ts';

/** How the service does, all its processes together. */
export function HealthPage() {
  const { samples, newest, problem, restarts } = useSampling();
  const isCounted = newest === undefined || countsRequests(newest);
  return (
    <>
      <PageHead title="Health" />
      {problem && <ProblemNote problem={problem} />}
      {restarts > 0 && (
        <p class="note" role="status">
          <Icon name="health" /> The service began anew while this page was open
          {restarts > 1 ? `, ${restarts} times` : ''}. What was not measured is a gap.
        </p>
      )}
      {!newest && samples.length === 0 && !problem && <Waiting />}
      {(newest || samples.length > 0) && (
        <>
          {newest && <Service snapshot={newest} />}
          {!isCounted && (
            <p class="note note-warn">
              <Icon name="warning" />
              <span>
                This service does not count its requests. Start it with <code>--metrics-port</code> to see
                lookups, latency and errors here.
              </span>
            </p>
          )}
          <div class="charts">
            {(isCounted ? [...COUNTED, ...ALWAYS] : ALWAYS).map((chart) => (
              <Chart key={chart.title} {...chart} samples={samples} />
            ))}
          </div>
          <FiguresTable sample={samples.at(-1)} snapshot={newest} />
        </>
      )}
    </>
  );
}

function line(
  label: string,
  colour: string,
  read: (sample: Sample) => number | undefined,
  dash?: readonly number[],
): ChartLine {
  return { label, colour, read, ...(dash ? { dash } : {}) };
}

const COUNTED = [
  {
    title: 'Lookups per second',
    format: rate,
    none: '–',
    lines: [
      line('lookups', '--accent', ({ figures }) => figures?.lookups),
      line('all requests', '--ink-faint', ({ figures }) => figures?.requests, [4, 4]),
    ],
  },
  {
    title: 'Latency of lookups',
    format: milliseconds,
    none: 'no lookup',
    lines: [
      line('median', '--accent', ({ figures }) => figures?.median),
      line('95 %', '--good', ({ figures }) => figures?.p95, [8, 3]),
      line('99 %', '--warn', ({ figures }) => figures?.p99, [2, 3]),
    ],
  },
  {
    title: 'Errors per second',
    format: rate,
    none: '–',
    lines: [
      line('failed (5xx)', '--danger', ({ figures }) => figures?.failed),
      line('refused (4xx)', '--ink-faint', ({ figures }) => figures?.refused, [4, 4]),
    ],
  },
];

const ALWAYS = [
  {
    title: 'Feed lag of webhooks',
    format: duration,
    none: 'no webhook',
    lines: [line('oldest change not received', '--accent', ({ lag }) => lag)],
  },
];

function Service({ snapshot }: { readonly snapshot: Snapshot }) {
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
        <Fact label="Streams of changes">{(streams ?? 0).toLocaleString()}</Fact>
        <Fact label="Started">
          {started === undefined ? '–' : <Instant at={new Date(started * 1_000).toISOString()} />}
        </Fact>
      </dl>
    </section>
  );
}

const ENGINES: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };
