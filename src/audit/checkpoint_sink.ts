/**
 * A destination for checkpoint lines outside of the database: a file, a URL, the service log. Rejects if the
 * lines could not be stored.
 */
export type CheckpointSink = (lines: readonly string[]) => Promise<void>;

/** Writes lines to all sinks. Rejects, after all were tried, if one failed. */
export async function writeToAll(sinks: readonly CheckpointSink[], lines: readonly string[]): Promise<void> {
  const failed = await firstFailure(sinks.map((sink) => sink(lines)));
  if (failed) throw failed.reason;
}

/** The first failure after all writes have ended; undefined if there is none. */
export async function firstFailure(
  writes: readonly Promise<void>[],
): Promise<PromiseRejectedResult | undefined> {
  const ended = await Promise.allSettled(writes);
  return ended.find((outcome) => outcome.status === 'rejected');
}

/** A sink with what was written to it, so that one process writes nothing twice. */
export interface TrackedSink {
  /**
   * After a failure it fails for the rest of the round, so that an unreachable sink costs one time-out per
   * round.
   */
  readonly write: CheckpointSink;
  beginRound(): void;
  /** The last written tag of each log, as `tagNumber`, by `logNumber`. */
  readonly tags: Map<number, number>;
  /** Erasures written here that another sink is still missing. */
  readonly erasures: Set<string>;
}

export function trackSink(sink: CheckpointSink): TrackedSink {
  let failed: { readonly reason: unknown } | undefined;
  return {
    tags: new Map(),
    erasures: new Set(),
    async write(lines) {
      if (failed) throw failed.reason;
      try {
        await sink(lines);
      } catch (reason) {
        failed = { reason };
        throw reason;
      }
    },
    beginRound() {
      failed = undefined;
    },
  };
}
