import { LIMITS } from '../../src/domain/limits.ts';

/** What was made and may go: the oldest of it does, so that there is always as much of it. */
export interface Made {
  /** Takes note of an address. */
  note(location: string): void;
  /** Removes what is too much, with this right. */
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

export function openMade(): Made {
  const queues = KINDS.map((kind) => ({ ...kind, locations: [] as string[] }));
  return {
    note(location) {
      queues.find(({ is }) => is(location))?.locations.push(location);
    },
    async trim(authorization) {
      for (const { locations, leftMax, removal } of queues) {
        while (locations.length > leftMax) {
          const [method, url] = removal(locations.shift() as string);
          await (await fetch(url, { method, headers: { Authorization: await authorization() } })).text();
        }
      }
    },
  };
}
