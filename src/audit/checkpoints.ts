import { Fault } from '../domain/fault.ts';
import { type Clock, parseUuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Leases } from '../jobs/leases.ts';
import { checkpointLine, erasureLine, type LogPosition, logPositionOf } from './checkpoint.ts';
import { type CheckpointSink, firstFailure, type TrackedSink, trackSink } from './checkpoint_sink.ts';
import type { LogKeys } from './log_keys.ts';
import type { Erasure, LogHead, LogStore } from './port.ts';
import { headsOf } from './verify.ts';

export interface CheckpointDeps {
  readonly store: Pick<LogStore, 'heads' | 'unreportedErasures' | 'markErasuresReported'>;
  readonly keys: Pick<LogKeys, 'sign'>;
  readonly sinks: readonly CheckpointSink[];
  readonly leases: Leases;
  readonly clock: Pick<Clock, 'now'>;
  /** The retention of entries, in days. */
  readonly retentionDays: number;
  /** Identifies the set of sinks; the same for all processes that share them. */
  readonly name: string;
  /** Called in each round in which a sink missed lines; `completeAt`: when all sinks last had everything. */
  onError(error: NodeJS.ErrnoException, completeAt: number): void;
}

export interface Checkpoints {
  /** Time since all sinks had everything, in milliseconds; undefined if another process writes to them. */
  ageMs(): number | undefined;
  stop(): Promise<void>;
}

/**
 * Writes missing erasures and checkpoints of changed logs to the sinks, every minute and at stop; the first
 * round covers all logs. One of the processes that share the sinks holds a lease and does so; every process
 * writes erasures when it starts. Keeps no process alive.
 */
export function startCheckpoints(deps: CheckpointDeps, everyMs: number = LIMITS.checkpointMs): Checkpoints {
  const { leases, clock } = deps;
  const lease = `checkpoints ${deps.name}`;
  const sinks = deps.sinks.map(trackSink);
  let completeAt = clock.now();
  let isFirst = true;

  /** Returns the errors, each once. A failing sink does not delay the others. */
  async function writeAll(): Promise<ReadonlySet<unknown>> {
    const errors = new Set<unknown>();
    const note = (error: unknown) => errors.add(error);
    for (const sink of sinks) sink.beginRound();
    await leases.keep([lease]).catch(note);
    // A process killed during an erasure may still hold the lease. Writing an erasure twice is harmless.
    if (isFirst || leases.holds(lease)) await writeErasures(deps, sinks, clock.now()).catch(note);
    isFirst = false;
    for (const sink of sinks) if (leases.holds(lease)) await writeCheckpoints(deps, sink).catch(note);
    return errors;
  }

  async function round(): Promise<void> {
    const errors = await writeAll();
    if (errors.size === 0) completeAt = clock.now();
    for (const error of errors) {
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
    ageMs: () => (leases.holds(lease) ? clock.now() - completeAt : undefined),
    async stop() {
      clearInterval(timer);
      await running.then(round);
      await leases.release().catch(() => undefined);
    },
  };
}

/** Writes checkpoints of each log whose tag differs from the one in the sink. */
async function writeCheckpoints(
  { store, keys, retentionDays, clock }: Omit<CheckpointDeps, 'sinks'>,
  { write, tags }: TrackedSink,
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

  async function send(): Promise<void> {
    sign();
    if (lines.length === 0) return;
    await write(lines);
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
    if (positions.length === LIMITS.checkpointsAtOnceMax) await send();
  }
  await send();
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
 * Writes the erasures that are not marked as reported to all sinks, and marks them. The erasing process
 * writes the line as well: this covers processes that were killed before. Rejects if a sink failed, after the
 * others were tried.
 */
export async function writeErasures(
  deps: Pick<CheckpointDeps, 'keys'> & {
    readonly store: Pick<LogStore, 'unreportedErasures' | 'markErasuresReported'>;
  },
  sinks: readonly TrackedSink[],
  now: number,
): Promise<void> {
  let failed: PromiseRejectedResult | undefined;
  let after: Erasure | undefined;
  for (;;) {
    const page = await deps.store.unreportedErasures(after, PAGE);
    if (page.length === 0) break;
    const erasures = page.filter(hasValidIds);
    const lines = new Map(erasures.map((erasure) => [erasureKey(erasure), erasureLine(erasure, deps.keys)]));
    const failure = await firstFailure(sinks.map((sink) => writeNew(sink, lines)));
    if (!failure) {
      await deps.store.markErasuresReported(erasures, now);
      for (const sink of sinks) for (const name of lines.keys()) sink.erasures.delete(name);
    }
    failed ??= failure;
    after = page.at(-1);
    // Signing blocks the event loop: yield to requests between pages.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (failed) throw failed.reason;
}

async function writeNew({ write, erasures }: TrackedSink, lines: ReadonlyMap<string, string>): Promise<void> {
  const missing = [...lines].filter(([name]) => !erasures.has(name));
  if (missing.length === 0) return;
  await write(missing.map(([, line]) => line));
  for (const [name] of missing) erasures.add(name);
}

/** Rows with other IDs were not written by this program; a line about them could not be read back. */
function hasValidIds({ realm, user }: Erasure): boolean {
  return parseUuid(realm) !== undefined && parseUuid(user) !== undefined;
}

function erasureKey({ realm, user, at }: Erasure): string {
  return `${realm} ${user} ${at}`;
}
