import { LIMITS } from './domain/limits.ts';
import type { DeliveryCounts } from './observe/delivery_counts.ts';
import type { Sample } from './observe/family.ts';
import type { Reading } from './observe/readings.ts';
import type { Engine } from './store/engine.ts';
import type { PoolFigures } from './workers/pool.ts';

/** Where the figures of a running service are. */
export interface Measured {
  readonly version: string;
  readonly engine: string;
  readonly startedAt: number;
  readonly figures: Engine['figures'];
  /** Of the workers that read lists; undefined where there are none. */
  readonly readers: (() => PoolFigures) | undefined;
  readonly hasher: () => PoolFigures;
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

/** What a webhook target was not told. */
interface Owed {
  /** Of the oldest change. */
  readonly since: number | undefined;
  readonly realms: number;
  readonly letters: number;
}

interface TellingMeasured {
  /** How many streams of changes are open. */
  readonly streams: () => number;
  readonly arrears: () => Promise<readonly (readonly [webhookId: string, owed: Owed])[]>;
  readonly counts: DeliveryCounts;
  readonly now: () => number;
}

/** What tells of the feed: its streams, and each webhook target by its identifier. One process tells a target. */
export function tellingMeasures({ streams, arrears, counts, now }: TellingMeasured): readonly Reading[] {
  /** Several figures are read of one answer. */
  let asked: ReturnType<typeof arrears> | undefined;
  const ofTargets = async (figure: (owed: Owed) => number): Promise<readonly Sample[]> => {
    asked ??= arrears().finally(() => {
      asked = undefined;
    });
    return (await asked).map(([webhook, owed]) => ({ labels: { webhook }, value: figure(owed) }));
  };
  const gauge = { kind: 'gauge', across: 'max' } as const;
  return [
    {
      ...{ kind: 'gauge', across: 'sum', name: 'authrealm_change_streams' },
      help: 'Streams of changes that are open.',
      read: streams,
    },
    {
      ...{ ...gauge, name: 'authrealm_webhook_behind_seconds' },
      help: 'Age of the oldest change that a target was to be told and has not received; 0 where there is none.',
      read: () => ofTargets(({ since }) => (since === undefined ? 0 : Math.max(0, now() - since) / 1_000)),
    },
    {
      ...{ ...gauge, name: 'authrealm_webhook_realms_behind' },
      help: `Realms of which a target did not receive something that is sent again; counted to ${LIMITS.arrearsCountedMax}.`,
      read: () => ofTargets(({ realms }) => realms),
    },
    {
      ...{ ...gauge, name: 'authrealm_webhook_dead_letters' },
      help: `Messages that were given up and not received later; counted to ${LIMITS.arrearsCountedMax}.`,
      read: () => ofTargets(({ letters }) => letters),
    },
    {
      ...{ kind: 'counter', name: 'authrealm_webhook_deliveries_total' },
      help: 'Attempts to tell a target something, by what became of them.',
      read: counts.outcomes,
    },
    {
      ...{ kind: 'histogram', name: 'authrealm_webhook_delivery_seconds', bounds: counts.bounds },
      help: 'How long such an attempt took.',
      read: counts.seconds,
    },
  ];
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
