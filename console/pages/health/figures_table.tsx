import { Instant } from '../../parts/instant.tsx';
import type { Figures } from './figures.ts';
import { gaugeOf } from './figures.ts';
import type { Sample } from './sampling.ts';
import type { Snapshot } from './snapshot.ts';
import { count, duration, milliseconds, rate } from './units.ts';

interface FiguresTableProps {
  readonly sample: Sample | undefined;
  readonly snapshot: Snapshot | undefined;
}

type Row = readonly [label: string, member: keyof Figures, format: (value: number) => string];

const ROWS: readonly Row[] = [
  ['Lookups', 'lookups', rate],
  ['All requests', 'requests', rate],
  ['Lookups: half are answered within', 'median', milliseconds],
  ['Lookups: 95 % are answered within', 'p95', milliseconds],
  ['Lookups: 99 % are answered within', 'p99', milliseconds],
  ['All requests: 99 % are answered within', 'allP99', milliseconds],
  ['Refused (4xx)', 'refused', rate],
  ['Failed (5xx)', 'failed', rate],
  ['Commits', 'commits', rate],
  ['Processors busy', 'processors', count],
  ['Event loop: 99 % of timers are late by at most', 'loopDelay', milliseconds],
];

/** The newest figures in words and numbers: for who cannot see the charts, and for who wants them exactly. */
export function FiguresTable({ sample, snapshot }: FiguresTableProps) {
  const gauges: readonly (readonly [string, string, (value: number) => string])[] = [
    ['Feed lag of webhooks', 'authrealm_webhook_behind_seconds', duration],
    ['Webhooks: dead letters of one at most', 'authrealm_webhook_dead_letters', count],
    ['Requests that wait', 'authrealm_requests_pending', count],
    ['Checkpoints: last said outside', 'authrealm_checkpoint_age_seconds', duration],
  ];
  return (
    <section class="section" aria-label="Newest figures">
      <div class="card-head">
        <h2>Newest figures</h2>
        {sample && (
          <p class="faint small">
            of the last 2 seconds, <Instant at={new Date(sample.at * 1_000).toISOString()} />
          </p>
        )}
      </div>
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">Figure</th>
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
