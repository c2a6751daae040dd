import { LIMITS } from '../../model/limits.ts';
import { METRICS } from './declarations.ts';
import { type Family, familyOf, histogram, type Labels, type Sample } from './family.ts';
import { LATENCY_SECONDS, openHistogramCounts } from './histogram.ts';

export type Meter = ReturnType<typeof openMeter>;
type Operation = ReturnType<typeof openOperation>;
export type OperationMeter = Pick<Operation, 'count'>;

/** Statuses are counted by their first digit. */
const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const;
const FIRST_CLASS = 2;

/** Counts requests. Its labels hold nothing of a caller: no path, no identifier, no client. */
export function openMeter() {
  const operations = new Map<string, Operation>();
  const causes = new Map<string, number>();

  function collect(): readonly Family[] {
    const used = [...operations.values()].filter(({ seconds }) => seconds.total() > 0);
    return [
      familyOf(METRICS.requests, used.flatMap(statusesOf)),
      familyOf(
        METRICS.faults,
        used.flatMap(({ labels, faults }) => samplesOf(faults, 'code', labels)),
      ),
      histogram(
        METRICS.requestDuration,
        LATENCY_SECONDS,
        used.map(({ labels, seconds }) => seconds.read(labels)),
      ),
      familyOf(METRICS.errors, samplesOf(causes, 'cause')),
    ];
  }

  return {
    /** Returns the same meter for the same operation. */
    operation(method: string, route: string): OperationMeter {
      return operations.getOrInsertComputed(`${method} ${route}`, () => openOperation({ method, route }));
    },
    /** Counts an error that was answered with a status of 500 or above, by its code. */
    countError(cause: string): void {
      const name = causes.has(cause) || causes.size < LIMITS.errorCausesMax ? cause : 'other';
      causes.set(name, (causes.get(name) ?? 0) + 1);
    },
    collect,
  };
}

/** Counts the requests of one operation: a method and the pattern of a route. */
function openOperation(labels: Labels) {
  const statuses = new Float64Array(FIRST_CLASS + CLASSES.length);
  const faults = new Map<string, number>();
  const seconds = openHistogramCounts();
  return {
    labels,
    statuses,
    faults,
    seconds,
    /** `fault`: the code of the answered fault; undefined for a success. */
    count(status: number, milliseconds: number, fault: string | undefined): void {
      const statusClass = (status / 100) | 0;
      statuses[statusClass] = (statuses[statusClass] as number) + 1;
      seconds.add(milliseconds / 1_000);
      if (fault !== undefined) faults.set(fault, (faults.get(fault) ?? 0) + 1);
    },
  };
}

/** Includes classes without a request, so that the first failure is seen as a rise. */
function statusesOf({ labels, statuses }: Operation): readonly Sample[] {
  return CLASSES.map((status, index) => ({
    labels: { ...labels, status },
    value: statuses[FIRST_CLASS + index] as number,
  }));
}

function samplesOf(
  counts: ReadonlyMap<string, number>,
  label: string,
  labels: Labels = {},
): readonly Sample[] {
  return [...counts].map(([key, value]) => ({ labels: { ...labels, [label]: key }, value }));
}
