import { Fault } from '../model/fault.ts';
import { type Clock, parseUuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { Erasure } from '../model/log/erasure.ts';
import { pagesOf } from '../model/pages.ts';
import type { JobLease } from '../sql/job_leases.ts';
import { checkpointLine, erasureLine, type LogPosition, logPositionOf } from './checkpoint.ts';
import type { LogKeys } from './keys.ts';
import type { LogHead, LogStore } from './store/reading.ts';
import { headsOf } from './verify.ts';

export interface CheckpointDeps {
  readonly store: Pick<LogStore, 'heads' | 'unreportedErasures' | 'markErasuresReported'>;
  readonly keys: Pick<LogKeys, 'sign'>;
  /** Appends lines to the checkpoint file. Throws if they could not be stored. */
  readonly append: (lines: readonly string[]) => void;
  /** Of the file; the same for all processes that share it. */
  readonly lease: JobLease;
  readonly clock: Pick<Clock, 'now'>;
  /** The retention of entries, in days. */
  readonly retentionDays: number;
  /** Called in each round in which lines could not be written; `completeAt`: when the file last had everything. */
  onError(error: NodeJS.ErrnoException, completeAt: number): void;
}

export type Checkpoints = ReturnType<typeof startCheckpoints>;

/**
 * Appends missing erasures and checkpoints of changed logs to the file, every minute and at stop; the first
 * round covers all logs. One of the processes that share the file holds a lease and does so; every process
 * writes erasures when it starts. Keeps no process alive.
 */
export function startCheckpoints(deps: CheckpointDeps, everyMs: number = LIMITS.checkpointMs) {
  const { lease, clock } = deps;
  const tags: WrittenTags = new Map();
  let completeAt = clock.now();
  let isFirst = true;

  async function round(): Promise<void> {
    try {
      await lease.keep();
      // A process killed during an erasure may still hold the lease. Writing an erasure twice is harmless.
      if (isFirst || lease.isHeld()) await writeErasures(deps, clock.now());
      isFirst = false;
      if (lease.isHeld()) await writeCheckpoints(deps, tags);
      completeAt = clock.now();
    } catch (error) {
      // Requests report an unavailable database; the next round catches up.
      if (!(error instanceof Fault)) deps.onError(error as NodeJS.ErrnoException, completeAt);
    }
  }

  let running = round();
  const timer = setInterval(() => {
    running = running.then(round);
  }, everyMs);
  timer.unref();
  return {
    /** Time since the file had everything, in milliseconds; undefined if this process does not write to one. */
    ageMs: (): number | undefined => (lease.isHeld() ? clock.now() - completeAt : undefined),
    async stop(): Promise<void> {
      clearInterval(timer);
      await running.then(round);
      await lease.release().catch(() => undefined);
    },
  };
}

/** The last tag of each log that this process wrote, as `tagNumber`, by `logNumber`. */
type WrittenTags = Map<number, number>;

/** Writes checkpoints of each log whose tag differs from the one in the file. */
async function writeCheckpoints(
  { store, keys, append, retentionDays, clock }: CheckpointDeps,
  tags: WrittenTags,
): Promise<void> {
  let unsigned: LogHead[] = [];
  let lines: string[] = [];
  /** The positions covered by `lines` and `unsigned`. */
  let positions: LogPosition[] = [];

  function sign(): void {
    if (unsigned.length === 0) return;
    // The time is taken after the heads were read, so that a backup taken later contains them.
    lines.push(checkpointLine(unsigned, { at: clock.now(), retentionDays }, keys));
    unsigned = [];
  }

  function write(): void {
    sign();
    if (lines.length === 0) return;
    append(lines);
    for (const position of positions) tags.set(logNumber(position), tagNumber(position));
    [lines, positions] = [[], []];
  }

  for await (const head of headsOf(store)) {
    const position = logPositionOf(head);
    if (!position || tags.get(logNumber(position)) === tagNumber(position)) continue;
    unsigned.push(head);
    positions.push(position);
    // Line by line, because signing dominates the cost: requests get their turn between pages of heads.
    if (unsigned.length === LIMITS.checkpointLogsMax) sign();
    if (positions.length === LIMITS.checkpointsAtOnceMax) write();
  }
  write();
}

/**
 * 53 bits of a hash of the log's ID. As keys these take 69 bytes per log; IDs would take 157 and fragment the heap
 * (docs/decisions/0021-audit-log.md). If two logs had the same number, both would be written in each round, and none missed.
 */
function logNumber({ log }: LogPosition): number {
  return Number(BigInt.asUintN(53, Bun.hash.wyhash(log)));
}

/** The first 52 bits of a tag, which covers the position. */
function tagNumber({ tag }: LogPosition): number {
  return Number.parseInt(tag.slice(0, 13), 16) || 0;
}

const PAGE = 100;

/**
 * Writes the erasures that are not marked as reported, and marks them. The erasing process writes the line as
 * well: this covers processes that were killed before.
 */
export async function writeErasures(
  { store, keys, append }: Pick<CheckpointDeps, 'store' | 'keys' | 'append'>,
  now: number,
): Promise<void> {
  for await (const page of pagesOf<Erasure>((last) => store.unreportedErasures(last, PAGE))) {
    // Rows with other IDs were not written by this program; a line about them could not be read back.
    const erasures = page.filter(({ realm, user }) => parseUuid(realm) && parseUuid(user));
    append(erasures.map((erasure) => erasureLine(erasure, keys)));
    await store.markErasuresReported(erasures, now);
    // Signing blocks the event loop: yield to requests between pages.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
