/** A one-time meeting point of concurrent workers. */
export interface Barrier {
  /** Waits for the other workers; settles with the action. */
  arrive(): Promise<void>;
  /** Gives up this worker's place, so that the others do not wait for it. */
  leave(): void;
}

/** Runs `action` once every participant has arrived or left; never, if all of them left. */
export function openBarrier(participants: number, action: () => Promise<void>): Barrier {
  const done = Promise.withResolvers<void>();
  let arrived = 0;
  let expected = participants;
  const runWhenComplete = () => {
    if (arrived > 0 && arrived === expected) action().then(done.resolve, done.reject);
  };
  return {
    arrive() {
      arrived += 1;
      runWhenComplete();
      return done.promise;
    },
    leave() {
      expected -= 1;
      runWhenComplete();
    },
  };
}
