import { Fault } from '../domain/fault.ts';
import type { Ambient, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Leases } from '../leases.ts';
import { checkpointLine } from './checkpoint.ts';
import { type LedgerRooms, openLedger, openPatience, type Witness } from './ledger.ts';
import type { LogHead, LogStore } from './port.ts';
import { headsOf } from './verify.ts';

export interface CheckpointRooms extends LedgerRooms {
  readonly store: Pick<LogStore, 'heads' | 'untold' | 'noteTold'>;
  readonly leases: Leases;
  readonly ambient: Pick<Ambient, 'now'>;
  /** How long entries are kept. */
  readonly retentionDays: number;
  /** The processes that share the witnesses. */
  readonly name: string;
  /** Told each minute in which a witness could not be told all; `since`: when all was told for the last time. */
  onTrouble(error: NodeJS.ErrnoException, since: number): void;
}

export interface Checkpoints {
  /** How long ago all that was to be told was told; undefined where another process tells. */
  ageMs(): number | undefined;
  stop(): Promise<void>;
}

/**
 * Tells witnesses every minute who was erased and not told of, and how far the logs are that moved, all of them at first and
 * when it ends: one of the processes that share the witnesses does, but for the erasures that each tells of at its start. It
 * keeps no process alive.
 */
export function startCheckpoints(rooms: CheckpointRooms, everyMs: number = LIMITS.checkpointMs): Checkpoints {
  const { leases, ambient } = rooms;
  const name = `checkpoints ${rooms.name}`;
  const patient = rooms.witnesses.map(openPatience);
  const ledger = openLedger({ ...rooms, witnesses: patient.map(({ witness }) => witness) });
  const works = [ledger, ...patient.map(({ witness }) => openTelling(rooms, witness))];
  let since = ambient.now();
  let isBeginning = true;

  /** What one witness cannot keep is told to the others. Answers what went wrong, each thing once. */
  async function tellEach(): Promise<ReadonlySet<unknown>> {
    const troubles = new Set<unknown>();
    const note = (error: unknown) => troubles.add(error);
    for (const { begin } of patient) begin();
    await leases.keep([name]).catch(note);
    // Who died over an erasure may have died with the lease: that is told at once, and twice is nothing.
    if (isBeginning && !leases.holds(name)) await ledger(ambient.now()).catch(note);
    isBeginning = false;
    for (const work of works) if (leases.holds(name)) await work(ambient.now()).catch(note);
    return troubles;
  }

  async function tell(): Promise<void> {
    const troubles = await tellEach();
    if (troubles.size === 0) since = ambient.now();
    for (const error of troubles) {
      // A database in trouble says so to every request; the next minute tells what this one did not.
      if (!(error instanceof Fault)) rooms.onTrouble(error as NodeJS.ErrnoException, since);
    }
  }

  let telling = tell();
  const timer = setInterval(() => {
    telling = telling.then(tell);
  }, everyMs);
  timer.unref();
  return {
    ageMs: () => (leases.holds(name) ? ambient.now() - since : undefined),
    async stop() {
      clearInterval(timer);
      await telling.then(tell);
      await leases.release().catch(() => undefined);
    },
  };
}

/** Tells one witness of the logs that moved since this process told it of them. */
function openTelling(
  { store, keys, retentionDays, ambient }: CheckpointRooms,
  witness: Witness,
): () => Promise<void> {
  const told = new Map<Uuid, number>();
  return async () => {
    let lines: string[] = [];
    let heads: LogHead[] = [];
    const tell = async (): Promise<void> => {
      await witness(lines);
      for (const { log, chain } of heads) if (chain) told.set(log, chain.end.seq);
      [lines, heads] = [[], []];
    };
    // Each line is written as soon as it has its logs: between pages of them others have their turn.
    for await (const moved of batchesOf(store, ({ log, chain }) => told.get(log) !== chain?.end.seq)) {
      // Its time is behind that of its heads, so a backup that is taken later holds what it tells of.
      lines.push(checkpointLine(moved, { at: ambient.now(), retentionDays }, keys));
      heads.push(...moved);
      if (heads.length >= LIMITS.checkpointsAtOnceMax) await tell();
    }
    if (lines.length > 0) await tell();
  };
}

/** The heads that are wanted, as many of them as a line tells of. */
async function* batchesOf(
  store: CheckpointRooms['store'],
  isWanted: (head: LogHead) => boolean,
): AsyncGenerator<readonly LogHead[]> {
  let batch: LogHead[] = [];
  for await (const head of headsOf(store)) {
    if (isWanted(head)) batch.push(head);
    if (batch.length < LIMITS.checkpointLogsMax) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
