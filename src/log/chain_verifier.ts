import type { Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { daysBefore } from '../model/log/days.ts';
import { type Anchor, type Chain, isAnchorValid, isChainStart, resumeChain } from './chain.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './keys.ts';
import type { StoredEntry } from './store/entry_row.ts';
import type { LogHead } from './store/reading.ts';

/** Called with each problem and its sequence number. */
export type ReportFinding = (seq: number | undefined, message: string) => void;

/** Verifies the chain of one log, from its start to its end. */
export function openChainVerifier(
  head: LogHead,
  evidence: CheckpointEvidence,
  keys: LogKeys,
  report: ReportFinding,
) {
  const compare = openCheckpointComparison(evidence.checkpoints, report);
  const chain = openStoredChain(head, evidence.checkpoints, keys, report);
  const anchor = head.chain?.anchor;
  const isTrimmed = anchor !== undefined && !isChainStart(keys, head.log, anchor);
  if (chain) compare(chain);
  let entries = 0;

  return {
    get entries() {
      return entries;
    },
    /** Checks the next entry, which is not after `head.seq`. */
    add(entry: StoredEntry): void {
      if (isTrimmed && entries === 0) checkTrimming(anchor, entry, evidence, report);
      entries += 1;
      checkEntry(entry, chain, report);
      if (chain) compare(chain);
    },
    /** Checks the end; no entry may be added afterwards. */
    end(): void {
      if (isTrimmed && entries === 0) report(anchor.seq, 'no entry is left, and retention always leaves one');
      if (chain) checkEnd(head, chain, report);
      compare('the end');
    },
  };
}

/** The chain at its anchor; undefined for a log without one. */
function openStoredChain(
  { log, chain: stored }: LogHead,
  checkpoints: readonly Checkpoint[],
  keys: LogKeys,
  report: ReportFinding,
): Chain | undefined {
  if (!stored) return undefined;
  const { anchor } = stored;
  if (!isAnchorValid(keys, log, anchor)) report(anchor.seq, 'the start of the log was moved or changed');
  const before = checkpoints.find(({ position }) => position < anchor.seq);
  if (before && isChainStart(keys, log, anchor)) {
    report(
      before.position,
      'a checkpoint covers an entry before the start of the log: the log was recreated',
    );
  }
  return resumeChain(keys, anchor);
}

function checkEntry(
  { seq, tag, columns }: StoredEntry,
  chain: Chain | undefined,
  report: ReportFinding,
): void {
  if (!chain) {
    report(seq, 'the log of this entry has no chain');
    return;
  }
  const missing = seq - chain.seq - 1;
  if (missing > 0) report(seq, `${missing} entries before this one are missing`);
  const expected = chain.next(seq, Object.values(columns));
  if (tag && Buffer.compare(tag, expected) === 0) return;
  report(seq, 'this entry, or one before it, was changed or inserted');
  // Later entries may still be unchanged.
  if (tag) chain.continueFrom(tag);
}

function checkEnd({ chain: stored }: LogHead, chain: Chain, report: ReportFinding): void {
  if (!stored) return;
  const { end } = stored;
  if (chain.seq !== end.seq)
    report(
      end.seq,
      `the log head is at this position, but the last entry is ${chain.seq}: some were removed`,
    );
  else if (Buffer.compare(chain.tag, end.tag) !== 0)
    report(end.seq, 'the tag in the log head is not that of the last entry');
  if (chain.entries !== end.entries)
    report(end.seq, `the log has ${chain.entries} entries, but its head counts ${end.entries}`);
}

/** Compares the chain with every checkpoint of a position. */
function openCheckpointComparison(
  checkpoints: readonly Checkpoint[],
  report: ReportFinding,
): (chain: Chain | 'the end') => void {
  const unmatched = Map.groupBy(checkpoints, ({ position }) => position);
  let firstPosition: number | undefined;
  return (chain) => {
    if (chain === 'the end') {
      for (const position of unmatched.keys()) {
        // A removed entry cannot be compared; checkTrimming decides whether it was old enough.
        if (firstPosition !== undefined && position < firstPosition) continue;
        report(
          position,
          'a checkpoint covers this entry, but it does not exist: entries were removed, or the database is older',
        );
      }
      return;
    }
    firstPosition ??= chain.seq;
    const checkpointsHere = unmatched.get(chain.seq) ?? [];
    unmatched.delete(chain.seq);
    const tag = Buffer.from(chain.tag).toString('hex');
    if (checkpointsHere.every((each) => each.tag === tag && each.entries === chain.entries)) return;
    report(chain.seq, 'this entry differs from a checkpoint: it, or an entry before it, was rewritten');
  };
}

export interface LogFinding {
  readonly log: Uuid;
  readonly seq: number | undefined;
  readonly message: string;
}

/** The checkpoints of one log, recorded outside of the database. */
export interface CheckpointEvidence {
  readonly checkpoints: readonly Checkpoint[];
  /**
   * Retention may have removed entries older than this, in milliseconds since the epoch; undefined without
   * checkpoints.
   */
  readonly removableBefore: number | undefined;
}

/**
 * The time before which an entry must have been written for retention to have removed it, computed from the times and retention in
 * the checkpoints; after the newest one from the time of the caller. So access to database and master key is not enough to make an
 * entry look old.
 */
export function retentionCutoffOf(checkpoints: readonly Checkpoint[]): (now: number) => number | undefined {
  const newest = checkpoints.reduce<Checkpoint | undefined>(
    (found, each) => (found && found.at > each.at ? found : each),
    undefined,
  );
  if (!newest) return () => undefined;
  const latestCutoff = checkpoints.reduce(
    (latest, each) => Math.max(latest, daysBefore(each.at, each.retentionDays)),
    0,
  );
  return (now) => Math.max(latestCutoff, daysBefore(now, newest.retentionDays));
}

/**
 * Checks a log whose oldest entries were removed. Retention keeps the newest of the entries that are old
 * enough: if a later checkpoint covers it, everything before was old. Without a later one, no entry may be
 * missing that a recent checkpoint covers.
 */
function checkTrimming(
  anchor: Anchor,
  first: StoredEntry,
  { checkpoints, removableBefore: before }: CheckpointEvidence,
  report: ReportFinding,
): void {
  if (before === undefined) return;
  if (!(first.at < before)) {
    report(first.seq, 'entries before this one were removed, but they were too recent for retention');
  }
  // Entries after a checkpoint were written later than it, as far as clocks agree.
  const late = before + LIMITS.retentionIntervalMs;
  const recent = checkpoints.find(({ position, at }) => position <= anchor.seq && !(at < late));
  if (!recent) return;
  const latestCutoff = new Date(recent.at).toISOString();
  report(
    recent.position,
    `a checkpoint of ${latestCutoff} covers this entry, but it was removed too early for retention`,
  );
}
