import type { ChildrenFigures } from './children.ts';
import { LIMITS } from './domain/limits.ts';
import type { Sample } from './observe/family.ts';
import type { Reading } from './observe/readings.ts';
import type { Engine } from './store/engine.ts';

/** Where the figures of a running service are. */
export interface Measured {
  readonly version: string;
  readonly engine: string;
  readonly startedAt: number;
  readonly figures: Engine['figures'];
  /** What reads lists beside the service; absent where nothing does. */
  readonly readers: (() => ChildrenFigures) | undefined;
  readonly hasher: () => ChildrenFigures;
  /** How many identity providers are being asked. */
  readonly discoveries: () => number;
  readonly pending: () => number;
}

/** Every figure that a serving process tells of itself beside its requests. */
export function measuresOf(measured: Measured): readonly Reading[] {
  const { figures, pending } = measured;
  return [
    ...descriptionOf(measured),
    ...queuesOf(measured),
    {
      kind: 'gauge',
      across: 'sum',
      name: 'authrealm_requests_pending',
      help: 'Requests that wait for their answer.',
      read: pending,
    },
    {
      kind: 'counter',
      name: 'authrealm_commits_total',
      help: 'Transactions of writes that were committed.',
      read: () => figures().commits,
    },
    {
      kind: 'counter',
      name: 'authrealm_commits_hindered_total',
      help: 'How often a commit waited, or began again, because somebody else was in the way.',
      read: () => figures().busy,
    },
  ];
}

/** `ageMs`: undefined before the first time that anybody asked. */
export function accessMeasure(ageMs: () => number | undefined): Reading {
  return {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_access_table_age_seconds',
    help: 'Age of what stands in memory about clients and keys; it grows while nobody asks.',
    read: () => labelled({}, ageMs()).map(({ labels, value }) => ({ labels, value: value / 1_000 })),
  };
}

/** `ageMs`: undefined where another process tells. */
export function checkpointMeasure(ageMs: () => number | undefined): Reading {
  return {
    kind: 'gauge',
    across: 'max',
    name: 'authrealm_checkpoint_age_seconds',
    help: 'Time since all that is told outside of the database was told: more than a minute where a place is away.',
    read: () => labelled({}, ageMs()).map(({ labels, value }) => ({ labels, value: value / 1_000 })),
  };
}

function descriptionOf({ version, engine, startedAt }: Measured): readonly Reading[] {
  return [
    {
      kind: 'gauge',
      across: 'max',
      name: 'authrealm_build_info',
      help: 'The release and its runtime, as labels.',
      read: () => labelled({ version, runtime: `bun ${Bun.version}` }, 1),
    },
    {
      kind: 'gauge',
      across: 'max',
      name: 'authrealm_engine_info',
      help: 'The engine of the database, as a label.',
      read: () => labelled({ engine }, 1),
    },
    {
      kind: 'gauge',
      across: 'min',
      name: 'process_start_time_seconds',
      help: 'When the service started, in seconds since the epoch.',
      read: () => startedAt / 1_000,
    },
  ];
}

/** What waits, and for how much there is room; what is being worked on. */
function queuesOf({ figures, readers, hasher, discoveries }: Measured): readonly Reading[] {
  const lists = () => readers?.() ?? figures().lists;
  return [
    {
      kind: 'gauge',
      across: 'sum',
      name: 'authrealm_queue_waiting',
      help: 'What waits to be done.',
      read: () => [
        ...labelled({ queue: 'writes' }, figures().writesWaiting),
        ...labelled({ queue: 'lists' }, lists()?.waiting),
        ...labelled({ queue: 'hashes' }, hasher().waiting),
      ],
    },
    {
      kind: 'gauge',
      across: 'sum',
      name: 'authrealm_queue_waiting_max',
      help: 'How much may wait before more of it is refused.',
      read: () => [
        ...labelled({ queue: 'writes' }, LIMITS.writesQueuedMax),
        ...labelled({ queue: 'lists' }, lists() && LIMITS.listsWaitingMax),
        ...labelled({ queue: 'hashes' }, LIMITS.hashesWaitingMax),
      ],
    },
    {
      kind: 'gauge',
      across: 'sum',
      name: 'authrealm_queue_working',
      help: 'What is being done beside the requests.',
      read: () => [
        ...labelled({ queue: 'lists' }, lists()?.working),
        ...labelled({ queue: 'hashes' }, hasher().working),
        ...labelled({ queue: 'discoveries' }, discoveries()),
      ],
    },
  ];
}

/** A sample, where there is a value. */
function labelled(labels: Sample['labels'], value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}
