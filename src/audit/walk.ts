import type { Uuid } from '../domain/id.ts';
import { type Chain, isAnchor, isBeginning, linkTo } from './chain.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './log_keys.ts';
import type { LogHead, StoredEntry } from './port.ts';
import { judgeTrimmed, type Outside } from './trimmed.ts';

/** One log on its way from its beginning to its end. */
export interface Walk {
  /** Judges the next entries, none of them behind `head.seq`. */
  take(entries: readonly StoredEntry[]): void;
  /** Judges the end; nothing is taken after it. */
  end(): void;
  /** How many entries had a tag, and how many that a release before 0.2.0 wrote had none. */
  readonly tagged: number;
  readonly untagged: number;
}

/** Told what is wrong, and at which place. */
export type Find = (seq: number | undefined, says: string) => void;

export function openWalk(head: LogHead, outside: Outside, keys: LogKeys, find: Find): Walk {
  const meet = openMeetings(outside.checkpoints, find);
  const chain = begin(head, outside.checkpoints, keys, find);
  const anchor = head.chain?.anchor;
  const isTrimmed = anchor !== undefined && !isBeginning(keys, head.log, anchor);
  if (chain) meet(chain);
  const end = head.chain?.end.seq ?? 0;
  let last = chain?.seq ?? 0;
  const counts = { tagged: 0, untagged: 0 };

  function take(entry: StoredEntry): void {
    if (isTrimmed && counts.tagged === 0) judgeTrimmed(anchor, entry, outside, find);
    last = entry.seq;
    if (entry.seq > end && entry.tag === null) {
      counts.untagged += 1;
      return;
    }
    counts.tagged += 1;
    judge(entry, { chain, end }, find);
    if (chain) meet(chain);
  }

  return {
    get tagged() {
      return counts.tagged;
    },
    get untagged() {
      return counts.untagged;
    },
    take(entries) {
      for (const entry of entries) take(entry);
    },
    end() {
      if (isTrimmed && counts.tagged === 0) find(anchor.seq, 'no entry is left: retention leaves one');
      if (chain) judgeEnd(head, chain, find);
      if (chain && head.seq !== last) find(head.seq, `its clock is here, and its last entry is ${last}`);
      meet('the end');
    },
  };
}

/** The chain at its beginning; undefined for a log without one. */
function begin(
  { log, chain: stored }: LogHead,
  checkpoints: readonly Checkpoint[],
  keys: LogKeys,
  find: Find,
): Chain | undefined {
  if (!stored) return undefined;
  const { anchor } = stored;
  if (!isAnchor(keys, log, anchor)) find(anchor.seq, 'its beginning was moved, or what it says was changed');
  const before = checkpoints.find(({ position }) => position < anchor.seq);
  if (before && isBeginning(keys, log, anchor)) {
    find(before.position, 'a checkpoint tells of an entry before its beginning: it was begun anew');
  }
  return linkTo(keys, anchor);
}

/** What a tagged entry is held against. */
interface Place {
  readonly chain: Chain | undefined;
  readonly end: number;
}

function judge({ seq, tag, columns }: StoredEntry, { chain, end }: Place, find: Find): void {
  if (!chain) {
    find(seq, 'it is tagged, and its log says that it has no chain');
    return;
  }
  if (seq > end) find(seq, 'it is tagged, and stands behind the end');
  const missing = seq - chain.seq - 1;
  if (missing > 0) find(seq, `${missing} entries before it are missing`);
  const expected = chain.next(seq, Object.values(columns));
  if (tag && Buffer.compare(tag, expected) === 0) return;
  find(seq, 'it was changed or put here, or what stood before it was');
  // What comes behind may still be what it was.
  if (tag) chain.go(tag);
}

function judgeEnd({ chain: stored }: LogHead, chain: Chain, find: Find): void {
  if (!stored) return;
  const { end } = stored;
  if (chain.seq !== end.seq)
    find(end.seq, `its end is said to be here, and its last entry is ${chain.seq}: some were cut off`);
  else if (Buffer.compare(chain.tag, end.tag) !== 0) find(end.seq, 'its end is not that of its last entry');
  if (chain.entries !== end.entries)
    find(end.seq, `it has ${chain.entries} entries, and says ${end.entries}`);
}

/** Compares places with what checkpoints say of them: each of them, where several tell of one place. */
function openMeetings(checkpoints: readonly Checkpoint[], find: Find): (chain: Chain | 'the end') => void {
  const awaited = Map.groupBy(checkpoints, ({ position }) => position);
  let beginning: number | undefined;
  return (chain) => {
    if (chain === 'the end') {
      for (const position of awaited.keys()) {
        // What was removed has no entry to be compared with; whether it was old enough is judged of the beginning.
        if (beginning !== undefined && position < beginning) continue;
        find(position, 'a checkpoint tells of it, and it is not there: cut off, or an older database');
      }
      return;
    }
    beginning ??= chain.seq;
    const told = awaited.get(chain.seq) ?? [];
    awaited.delete(chain.seq);
    const tag = Buffer.from(chain.tag).toString('hex');
    if (told.every((each) => each.tag === tag && each.entries === chain.entries)) return;
    find(chain.seq, 'it is not what a checkpoint says: it, or what stood before it, was written anew');
  };
}

/** The log's name in what is found. */
export interface Found {
  readonly log: Uuid;
  readonly seq: number | undefined;
  readonly says: string;
}
