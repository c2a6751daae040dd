import type { Uuid } from '../domain/id.ts';

/**
 * An output for lines outside of the database: a file, a URL, the service's own log. Rejects where it could
 * not keep them.
 */
export type CheckpointSink = (lines: readonly string[]) => Promise<void>;

/** Writes lines to all sinks. Rejects, once every sink was asked, where one of them could not keep them. */
export async function writeToAll(sinks: readonly CheckpointSink[], lines: readonly string[]): Promise<void> {
  const failed = await firstFailure(sinks.map((sink) => sink(lines)));
  if (failed) throw failed.reason;
}

/** The first failure, once all have ended; undefined where there is none. */
export async function firstFailure(
  writes: readonly Promise<void>[],
): Promise<PromiseRejectedResult | undefined> {
  const ended = await Promise.allSettled(writes);
  return ended.find((outcome) => outcome.status === 'rejected');
}

/** A sink with what it has already, so that nothing is written to it twice by one process. */
export interface TrackedSink {
  /** Fails for the rest of a round once it failed, so that a sink that is away costs a round one time-out. */
  readonly write: CheckpointSink;
  beginRound(): void;
  /** Of each log a number made of the last tag (`tagNumber`). */
  readonly tags: Map<Uuid, number>;
  /** Erasures that another sink does not have yet. */
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
