import { median } from './load.ts';
import { markdownTable, milliseconds, ratio, whole } from './markdown.ts';

/** Lookups concurrently with callers of one operation, one figure for each round. */
export interface MixedRow {
  readonly name: string;
  /** The rate of the lookups divided by their quiet rate in the same round. */
  readonly ratios: readonly number[];
  /** Milliseconds. */
  readonly p99: readonly number[];
  /** Responses to the callers per second. */
  readonly perSecond: readonly number[];
  /** Of all responses to the callers: rejected as overloaded (503), and any other error status. */
  readonly overloadedShare: number;
  readonly failedShare: number;
}

export interface MixedRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly engine: string;
  readonly users: number;
  readonly realms: number;
  readonly callers: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly rows: readonly MixedRow[];
}

/** What lookups must keep of their quiet rate. */
const KEPT_MIN = 0.7;
/** Callers with a greater share of errors do not measure the operation. */
const FAILED_SHARE_MAX = 0.1;

export const isMeasured = ({ failedShare }: MixedRow): boolean => failedShare <= FAILED_SHARE_MAX;

/** The operations that leave lookups less than KEPT_MIN of their quiet rate. */
export function belowMin({ rows }: MixedRun): readonly MixedRow[] {
  return rows.filter((row) => isMeasured(row) && median(row.ratios) < KEPT_MIN);
}

/** Operations that a page shows. */
const WORST = 3;

/** All operations, the worst first; those that were not measured are last. */
export function mixedMarkdown(run: MixedRun): string {
  return `${summaryOf(run)}\n\n${tableOf(run, worstFirst(run))}`;
}

/** The operations that cost lookups most, and what they leave of the rate. */
export function worstMarkdown(run: MixedRun): string {
  const worst = worstFirst(run).slice(0, WORST);
  const listed = worst.map(({ name, ratios }) => `\`${name}\` ${ratio(median(ratios))}`);
  return `- ${summaryOf(run)} The worst: ${listed.join(', ')}.`;
}

function worstFirst({ rows }: MixedRun): readonly MixedRow[] {
  const order = (row: MixedRow) => (isMeasured(row) ? median(row.ratios) : Number.POSITIVE_INFINITY);
  return rows.toSorted((left, right) => order(left) - order(right));
}

function tableOf({ callers }: MixedRun, rows: readonly MixedRow[]): string {
  return markdownTable(
    [
      `lookups concurrently with ${callers} callers of`,
      'ratio to quiet lookups',
      'p99, ms',
      'responses/s',
      'of them 503',
      'other errors',
    ],
    rows.map((row) => [
      row.name,
      ...(isMeasured(row)
        ? [
            `${ratio(median(row.ratios))} (${ratio(Math.min(...row.ratios))}–${ratio(Math.max(...row.ratios))})`,
            milliseconds(median(row.p99)),
          ]
        : ['not measured', '–']),
      whole(median(row.perSecond)),
      ratio(row.overloadedShare),
      ratio(row.failedShare),
    ]),
  );
}

function summaryOf(run: MixedRun): string {
  const { rows, engine, users, realms, seconds, rounds, at, machine } = run;
  return (
    `${engine}, ${whole(users)} users in the largest of ${whole(realms)} realms, ${machine.cpu}, ${machine.cores} cores, ` +
    `${rounds} × ${seconds} s, ${at.slice(0, 10)}: ${belowMin(run).length} of ${rows.filter(isMeasured).length} ` +
    `operations leave lookups less than ${KEPT_MIN} of the quiet rate.`
  );
}
