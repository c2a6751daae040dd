import { LIMITS } from '../../../src/domain/limits.ts';

/** What was made and may go: the oldest of it does, so that there is always as much of it. */
export interface Made {
  /** Takes note of an address. */
  note(location: string): void;
  /** Removes what is too much, with this right. What cannot be removed now is the first to be the next time. */
  trim(authorization: () => Promise<string>): Promise<void>;
}

/** Of a kind of record: how many are left, and how one goes. */
interface Kind {
  readonly is: (location: string) => boolean;
  readonly leftMax: number;
  readonly removal: (location: string) => readonly [method: string, url: string];
}

const KINDS: readonly Kind[] = [
  // There may be few, and a world that finds no room for its own cannot be made.
  {
    is: (location) => location.includes('/signing-keys/'),
    leftMax: LIMITS.signingKeysMax / 2,
    removal: (location) => ['POST', `${location}/withdraw`],
  },
  // Far below what there may be, so that what is right goes on to be so.
  { is: () => true, leftMax: 200, removal: (location) => ['DELETE', location] },
];

/** Who asks has lost the right to meanwhile, or there is too much to do. */
const LATER: readonly number[] = [401, 403, 429, 503];

export function openMade(): Made {
  const queues = KINDS.map((kind) => ({ ...kind, locations: [] as string[] }));

  async function trimOne({ locations, leftMax, removal }: (typeof queues)[number], authorization: string) {
    while (locations.length > leftMax) {
      const location = locations.shift() as string;
      const [method, url] = removal(location);
      let isOver = false;
      try {
        const answer = await fetch(url, { method, headers: { Authorization: authorization } });
        await answer.text();
        isOver = !LATER.includes(answer.status);
      } finally {
        if (!isOver) locations.unshift(location);
      }
      if (!isOver) return;
    }
  }

  return {
    note(location) {
      queues.find(({ is }) => is(location))?.locations.push(location);
    },
    async trim(authorization) {
      if (queues.every(({ locations, leftMax }) => locations.length <= leftMax)) return;
      const held = await authorization();
      for (const queue of queues) await trimOne(queue, held);
    },
  };
}
