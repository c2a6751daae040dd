import { daysBefore } from '../domain/days.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Chain, isAnchorValid, isChainStart, resumeChain } from './chain.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './log_keys.ts';
import type { Anchor, LogHead, StoredEntry } from './port.ts';

/** One log on its way from its beginning to its end. */
export interface ChainVerifier {
  /** Judges the next entries, none of them behind `head.seq`. */
  add(entries: readonly StoredEntry[]): void;
  /** Judges the end; nothing is taken after it. */
  end(): void;
  /** How many entries had a tag, and how many that a release before 0.2.0 wrote had none. */
  readonly tagged: number;
  readonly untagged: number;
}

/** Told what is wrong, and at which place. */
export type ReportFinding = (seq: number | undefined, message: string) => void;

export function openChainVerifier(
  head: LogHead,
  evidence: CheckpointEvidence,
  keys: LogKeys,
  report: ReportFinding,
): ChainVerifier {
  const compare = openCheckpointComparison(evidence.checkpoints, report);
  const chain = openStoredChain(head, evidence.checkpoints, keys, report);
  const anchor = head.chain?.anchor;
  const isTrimmed = anchor !== undefined && !isChainStart(keys, head.log, anchor);
  if (chain) compare(chain);
  const end = head.chain?.end.seq ?? 0;
  let last = chain?.seq ?? 0;
  const counts = { tagged: 0, untagged: 0 };

  function take(entry: StoredEntry): void {
    if (isTrimmed && counts.tagged === 0) checkTrimming(anchor, entry, evidence, report);
    last = entry.seq;
    if (entry.seq > end && entry.tag === null) {
      counts.untagged += 1;
      return;
    }
    counts.tagged += 1;
    checkEntry(entry, { chain, end }, report);
    if (chain) compare(chain);
  }

  return {
    get tagged() {
      return counts.tagged;
    },
    get untagged() {
      return counts.untagged;
    },
    add(entries) {
      for (const entry of entries) take(entry);
    },
    end() {
      if (isTrimmed && counts.tagged === 0) report(anchor.seq, 'no entry is left: retention leaves one');
      if (chain) checkEnd(head, chain, report);
      if (chain && head.seq !== last) report(head.seq, `its clock is here, and its last entry is ${last}`);
      compare('the end');
    },
  };
}

/** The chain at its beginning; undefined for a log without one. */
function openStoredChain(
  { log, chain: stored }: LogHead,
  checkpoints: readonly Checkpoint[],
  keys: LogKeys,
  report: ReportFinding,
): Chain | undefined {
  if (!stored) return undefined;
  const { anchor } = stored;
  if (!isAnchorValid(keys, log, anchor))
    report(anchor.seq, 'its beginning was moved, or what it says was changed');
  const before = checkpoints.find(({ position }) => position < anchor.seq);
  if (before && isChainStart(keys, log, anchor)) {
    report(before.position, 'a checkpoint tells of an entry before its beginning: it was begun anew');
  }
  return resumeChain(keys, anchor);
}

/** What a tagged entry is held against. */
interface ExpectedEntry {
  readonly chain: Chain | undefined;
  readonly end: number;
}

function checkEntry(
  { seq, tag, columns }: StoredEntry,
  { chain, end }: ExpectedEntry,
  report: ReportFinding,
): void {
  if (!chain) {
    report(seq, 'it is tagged, and its log says that it has no chain');
    return;
  }
  if (seq > end) report(seq, 'it is tagged, and stands behind the end');
  const missing = seq - chain.seq - 1;
  if (missing > 0) report(seq, `${missing} entries before it are missing`);
  const expected = chain.next(seq, Object.values(columns));
  if (tag && Buffer.compare(tag, expected) === 0) return;
  report(seq, 'it was changed or put here, or what stood before it was');
  // What comes behind may still be what it was.
  if (tag) chain.continueFrom(tag);
}

function checkEnd({ chain: stored }: LogHead, chain: Chain, report: ReportFinding): void {
  if (!stored) return;
  const { end } = stored;
  if (chain.seq !== end.seq)
    report(end.seq, `its end is said to be here, and its last entry is ${chain.seq}: some were cut off`);
  else if (Buffer.compare(chain.tag, end.tag) !== 0) report(end.seq, 'its end is not that of its last entry');
  if (chain.entries !== end.entries)
    report(end.seq, `it has ${chain.entries} entries, and says ${end.entries}`);
}

/** Compares places with what checkpoints say of them: each of them, where several tell of one place. */
function openCheckpointComparison(
  checkpoints: readonly Checkpoint[],
  report: ReportFinding,
): (chain: Chain | 'the end') => void {
  const unmatched = Map.groupBy(checkpoints, ({ position }) => position);
  let firstPosition: number | undefined;
  return (chain) => {
    if (chain === 'the end') {
      for (const position of unmatched.keys()) {
        // What was removed has no entry to be compared with; whether it was old enough is judged of the
        // beginning.
        if (firstPosition !== undefined && position < firstPosition) continue;
        report(position, 'a checkpoint tells of it, and it is not there: cut off, or an older database');
      }
      return;
    }
    firstPosition ??= chain.seq;
    const checkpointsHere = unmatched.get(chain.seq) ?? [];
    unmatched.delete(chain.seq);
    const tag = Buffer.from(chain.tag).toString('hex');
    if (checkpointsHere.every((each) => each.tag === tag && each.entries === chain.entries)) return;
    report(chain.seq, 'it is not what a checkpoint says: it, or what stood before it, was written anew');
  };
}

/** The log's name in what is found. */
export interface LogFinding {
  readonly log: Uuid;
  readonly seq: number | undefined;
  readonly message: string;
}

/** What was said outside of the database, as far as one log is concerned. */
export interface CheckpointEvidence {
  readonly checkpoints: readonly Checkpoint[];
  /**
   * Retention may have removed what was written before, in milliseconds since the epoch; undefined where
   * nothing was said.
   */
  readonly removableBefore: number | undefined;
}

/** Up to when an entry must have been written that retention may have removed by now. */
export type RetentionCutoff = (now: number) => number | undefined;

/**
 * By the checkpoints' own times, each with the retention that was in force then; after the newest one by the
 * time of who asks. So nobody who has the database and the master key has it believed that something was old.
 */
export function retentionCutoffOf(checkpoints: readonly Checkpoint[]): RetentionCutoff {
  const newest = checkpoints.reduce<Checkpoint | undefined>(
    (found, each) => (found && found.at > each.at ? found : each),
    undefined,
  );
  if (!newest) return () => undefined;
  const latestCutoff = checkpoints.reduce((latest, each) => Math.max(latest, cutoffAt(each.at, each)), 0);
  return (now) => Math.max(latestCutoff, cutoffAt(now, newest));
}

function cutoffAt(time: number, { retentionDays }: Checkpoint): number {
  return daysBefore(time, retentionDays);
}

/**
 * Judges a log whose oldest entries went. Retention leaves the newest of those that are old enough to go: as
 * a later checkpoint proves that entry, it proves that what stood before was old. Where no later one does,
 * nothing went that was written after a checkpoint of late.
 */
export function checkTrimming(
  anchor: Anchor,
  first: StoredEntry,
  { checkpoints, removableBefore: before }: CheckpointEvidence,
  report: ReportFinding,
): void {
  if (before === undefined) return;
  if (!(first.at < before)) {
    report(first.seq, 'what stood before it was removed, and it is not old enough for that to be retention');
  }
  // What is behind a checkpoint was written later than it, as far as clocks agree.
  const late = before + LIMITS.retentionEveryMs;
  const recent = checkpoints.find(({ position, at }) => position <= anchor.seq && !(at < late));
  if (!recent) return;
  const latestCutoff = new Date(recent.at).toISOString();
  report(
    recent.position,
    `a checkpoint of ${latestCutoff} tells of it, and it was removed: too early for retention`,
  );
}
