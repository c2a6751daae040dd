import type { Family, Labels, Sample } from './family.ts';
import { openTally, SECONDS, type Tally } from './tally.ts';

/** Counts the requests of one operation: a method and the pattern of a route. */
export interface OperationMeter {
  /** `fault`: the code of what was answered instead of success. */
  count(status: number, milliseconds: number, fault: string | undefined): void;
}

/** Counts requests. Nothing of a caller is in it: no path, no identifier, no client. */
export interface Meter {
  /** The same one for the same operation. */
  operation(method: string, route: string): OperationMeter;
  /** What stood behind an answer of 500 or above, by its code. */
  trouble(cause: string): void;
  read(): readonly Family[];
}

interface Operation extends OperationMeter {
  readonly labels: Labels;
  readonly statuses: Float64Array;
  readonly faults: ReadonlyMap<string, number>;
  readonly seconds: Tally;
}

/** Statuses are told by their first digit. */
const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const;
const FIRST_CLASS = 2;

/** `causesMax`: how many causes are told apart; further ones are `other`. */
export function openMeter(causesMax: number): Meter {
  const operations = new Map<string, Operation>();
  const causes = new Map<string, number>();

  function read(): readonly Family[] {
    const asked = [...operations.values()].filter(({ seconds }) => seconds.total() > 0);
    return [
      {
        kind: 'counter',
        name: 'authrealm_requests_total',
        help: 'Requests answered, by operation and status.',
        samples: asked.flatMap(statusesOf),
      },
      {
        kind: 'counter',
        name: 'authrealm_faults_total',
        help: 'Requests answered with a fault, by operation and code.',
        samples: asked.flatMap(({ labels, faults }) => samplesOf(faults, 'code', labels)),
      },
      {
        kind: 'histogram',
        name: 'authrealm_request_seconds',
        help: 'From the headers of a request to its answer, by operation.',
        bounds: SECONDS,
        distributions: asked.map(({ labels, seconds }) => seconds.read(labels)),
      },
      {
        kind: 'counter',
        name: 'authrealm_troubles_total',
        help: 'What stood behind answers of 500 and above, by the code that the log has as cause.',
        samples: samplesOf(causes, 'cause'),
      },
    ];
  }

  return {
    operation(method, route) {
      const name = `${method} ${route}`;
      const operation = operations.get(name) ?? openOperation({ method, route });
      operations.set(name, operation);
      return operation;
    },
    trouble(cause) {
      const name = causes.has(cause) || causes.size < causesMax ? cause : 'other';
      causes.set(name, (causes.get(name) ?? 0) + 1);
    },
    read,
  };
}

function openOperation(labels: Labels): Operation {
  const statuses = new Float64Array(FIRST_CLASS + CLASSES.length);
  const faults = new Map<string, number>();
  const seconds = openTally();
  return {
    labels,
    statuses,
    faults,
    seconds,
    count(status, milliseconds, fault) {
      const place = (status / 100) | 0;
      statuses[place] = (statuses[place] as number) + 1;
      seconds.add(milliseconds / 1_000);
      if (fault !== undefined) faults.set(fault, (faults.get(fault) ?? 0) + 1);
    },
  };
}

/** Those that never came are told as well: a first failure is then seen as a rise. */
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
