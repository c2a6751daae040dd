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
  /** How long entries are kept. */
  readonly retentionDays: number;
  /** The same for all processes that share the sinks. */
  readonly name: string;
  /**
   * Called each minute in which a sink did not get everything; `since`: when all of them last had everything.
   */
  onError(error: NodeJS.ErrnoException, completeAt: number): void;
}

export interface Checkpoints {
  /** How long ago the sinks last got everything; undefined where another process writes to them. */
  ageMs(): number | undefined;
  stop(): Promise<void>;
}

/**
 * Writes to sinks, every minute and when it is stopped, erasures that they do not have, and checkpoints of
 * the logs that moved; at first of all logs. Of the processes that share the sinks one does so, but each
 * writes erasures when it starts. Keeps no process alive.
 */
export function startCheckpoints(deps: CheckpointDeps, everyMs: number = LIMITS.checkpointMs): Checkpoints {
  const { leases, clock } = deps;
  const lease = `checkpoints ${deps.name}`;
  const sinks = deps.sinks.map(trackSink);
  let completeAt = clock.now();
  let isFirst = true;

  /** Answers what went wrong, each error once. A sink that fails does not keep the others waiting. */
  async function writeAll(): Promise<ReadonlySet<unknown>> {
    const errors = new Set<unknown>();
    const note = (error: unknown) => errors.add(error);
    for (const sink of sinks) sink.beginRound();
    await leases.keep([lease]).catch(note);
    // A process that was killed over an erasure may have left its lease behind. Twice does no harm.
    if (isFirst || leases.holds(lease)) await writeErasures(deps, sinks, clock.now()).catch(note);
    isFirst = false;
    for (const sink of sinks) if (leases.holds(lease)) await writeCheckpoints(deps, sink).catch(note);
    return errors;
  }

  async function round(): Promise<void> {
    const errors = await writeAll();
    if (errors.size === 0) completeAt = clock.now();
    for (const error of errors) {
      // Every request reports an unavailable database; the next minute makes up for this one.
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

/** Writes checkpoints of each log whose tag is not the one that the sink has. */
async function writeCheckpoints(
  { store, keys, retentionDays, clock }: Omit<CheckpointDeps, 'sinks'>,
  { write, tags }: TrackedSink,
): Promise<void> {
  let unsigned: LogHead[] = [];
  let lines: string[] = [];
  /** What the lines, and the one that is not signed yet, will say. */
  let positions: LogPosition[] = [];

  function sign(): void {
    if (unsigned.length === 0) return;
    // Its time is after that of the heads, so that a backup that is taken later holds what it names.
    lines.push(checkpointLine(unsigned, { at: clock.now(), retentionDays }, keys));
    unsigned = [];
  }

  async function send(): Promise<void> {
    sign();
    if (lines.length === 0) return;
    await write(lines);
    for (const position of positions) tags.set(position.log, tagNumber(position));
    [lines, positions] = [[], []];
  }

  for await (const head of headsOf(store)) {
    const position = logPositionOf(head);
    if (!position || tags.get(position.log) === tagNumber(position)) continue;
    unsigned.push(head);
    positions.push(position);
    // Line by line, because signing takes longer than all else: requests get their turn between pages of
    // heads.
    if (unsigned.length === LIMITS.checkpointLogsMax) sign();
    if (positions.length === LIMITS.checkpointsAtOnceMax) await send();
  }
  await send();
}

/**
 * The first 52 bits of a tag, which covers the position: with a number as value the map takes 157 bytes a
 * log, with texts 504 (docs/decisions/0043).
 */
function tagNumber({ tag }: LogPosition): number {
  return Number.parseInt(tag.slice(0, 13), 16) || 0;
}

const PAGE = 100;

/**
 * Writes the erasures of which it is not noted that every sink has them, and notes it then. Whoever erases
 * writes the line, too: this is for lines that are missing because that process was killed before. Rejects
 * where a sink failed, after the others were asked.
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
    // Signing takes the event loop, and nothing else gives it back while a sink is away.
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

/** No other row is of this program; a line about one could not be read again, and a restore skips none. */
function hasValidIds({ realm, user }: Erasure): boolean {
  return parseUuid(realm) !== undefined && parseUuid(user) !== undefined;
}

function erasureKey({ realm, user, at }: Erasure): string {
  return `${realm} ${user} ${at}`;
}
