import { type Clock, parseUuid, type Revision, type Uuid } from '../../model/id.ts';

function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count));
}

/** The clock and the randomness of the system. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  mintId: () => parseUuid(Bun.randomUUIDv7()) as Uuid,
  mintRevision: () => randomBytes(8).toHex() as Revision,
  randomBytes,
};
