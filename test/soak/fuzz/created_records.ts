import { LIMITS } from '../../../src/model/limits.ts';

/** Records that the fuzzer created and may delete: the oldest go first, so that their number stays bounded. */
export interface CreatedRecords {
  add(location: string): void;
  /** Removes records above the bound. One that cannot be removed now is tried first the next time. */
  trim(authorization: () => Promise<string>): Promise<void>;
}

/** How many records of a kind stay, and how one is removed. */
interface Kind {
  readonly matches: (location: string) => boolean;
  readonly recordsMax: number;
  readonly removal: (location: string) => readonly [method: string, url: string];
}

const KINDS: readonly Kind[] = [
  // The service limits their number, and fixtures need some for themselves.
  {
    matches: (location) => location.includes('/signing-keys/'),
    recordsMax: LIMITS.signingKeysMax / 2,
    removal: (location) => ['POST', `${location}/withdraw`],
  },
  // Far below every limit, so that valid requests keep succeeding.
  { matches: () => true, recordsMax: 200, removal: (location) => ['DELETE', location] },
];

/** The token lost its rights meanwhile, or the service is overloaded: retry later. */
const RETRY_STATUSES: readonly number[] = [401, 403, 429, 503];

export function openCreatedRecords(): CreatedRecords {
  const queues = KINDS.map((kind) => ({ ...kind, locations: [] as string[] }));

  async function trimOne({ locations, recordsMax, removal }: (typeof queues)[number], authorization: string) {
    while (locations.length > recordsMax) {
      const location = locations.shift() as string;
      const [method, url] = removal(location);
      let isDone = false;
      try {
        const answer = await fetch(url, { method, headers: { Authorization: authorization } });
        await answer.text();
        isDone = !RETRY_STATUSES.includes(answer.status);
      } finally {
        if (!isDone) locations.unshift(location);
      }
      if (!isDone) return;
    }
  }

  return {
    add(location) {
      queues.find(({ matches }) => matches(location))?.locations.push(location);
    },
    async trim(authorization) {
      if (queues.every(({ locations, recordsMax }) => locations.length <= recordsMax)) return;
      const bearer = await authorization();
      for (const queue of queues) await trimOne(queue, bearer);
    },
  };
}
