import { Fault } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Leases } from '../leases.ts';
import { checkpointLine, type Place, placeOf } from './checkpoint.ts';
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

/** Tells one witness of each log that is not where this process told it last. */
function openTelling(
  { store, keys, retentionDays, ambient }: CheckpointRooms,
  witness: Witness,
): () => Promise<void> {
  const markOf = openMarks();
  let told = new Set<number>();
  return async () => {
    const met = new Set<number>();
    let heads: LogHead[] = [];
    let lines: string[] = [];
    let marks: number[] = [];
    const sign = (): void => {
      if (heads.length === 0) return;
      // Its time is behind that of its heads, so a backup that is taken later holds what it tells of.
      lines.push(checkpointLine(heads, { at: ambient.now(), retentionDays }, keys));
      heads = [];
    };
    const tell = async (): Promise<void> => {
      sign();
      if (lines.length === 0) return;
      await witness(lines);
      for (const mark of marks) told.add(mark);
      [lines, marks] = [[], []];
    };
    for await (const head of headsOf(store)) {
      const place = placeOf(head);
      if (!place) continue;
      const mark = markOf(place);
      met.add(mark);
      if (told.has(mark)) continue;
      heads.push(head);
      marks.push(mark);
      // Each line is written as soon as it has its logs: between pages of them others have their turn.
      if (heads.length === LIMITS.checkpointLogsMax) sign();
      if (marks.length === LIMITS.checkpointsAtOnceMax) await tell();
    }
    await tell();
    told = met;
  };
}

/**
 * A number of 52 bits for each place of each log. Of a log a number is kept and no text, because texts that come one by one
 * and stay keep the memory around them from being given back. It depends on a secret of its own, so that nobody finds two
 * places that have one number, one of which would never be told.
 */
function openMarks(): (place: Place) => number {
  const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).readBigUInt64LE();
  return ({ log, position, tag, entries }) =>
    Number(Bun.hash.wyhash(`${log} ${position} ${entries} ${tag}`, secret) >> 12n);
}
