import { markdownTable, milliseconds, ratio, whole } from './markdown.ts';

/** Lookups beside callers of one operation. */
export interface MixedRow {
  readonly name: string;
  /** The rate of the lookups divided by their quiet rate. */
  readonly ratio: number;
  readonly quietPerSecond: number;
  /** Milliseconds. */
  readonly p99: number;
  /** Responses to the callers per second, and the share of them with an error status. */
  readonly perSecond: number;
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

const WORST = 5;
/** What lookups must keep of their quiet rate. */
const KEPT_MIN = 0.7;

/** The worst operations, and those that leave less than KEPT_MIN. */
export function mixedMarkdown({ rows, engine, users, realms, callers, at, machine }: MixedRun): string {
  const sorted = rows.toSorted((left, right) => left.ratio - right.ratio);
  const below = sorted.filter((row) => row.ratio < KEPT_MIN).length;
  const table = markdownTable(
    [`lookups beside ${callers} callers of`, 'kept', 'p99, ms', 'responses/s', 'of them errors'],
    sorted
      .slice(0, Math.max(WORST, below))
      .map((row) => [
        row.name,
        ratio(row.ratio),
        milliseconds(row.p99),
        whole(row.perSecond),
        ratio(row.failedShare),
      ]),
  );
  return (
    `${engine}, ${whole(users)} users in ${whole(realms)} realms, ${machine.cpu}, ${machine.cores} cores, ${at.slice(0, 10)}: ` +
    `${below} of ${rows.length} operations leave the lookups less than ${KEPT_MIN} of their quiet rate.\n\n${table}`
  );
}
