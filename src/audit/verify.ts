import { NIL_UUID } from '../domain/id.ts';
import { readBeginnings } from './beginnings.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './log_keys.ts';
import { openPersonsJudge } from './persons.ts';
import type { LogHead, LogStore } from './port.ts';
import { type Horizon, horizonOf } from './trimmed.ts';
import { type Find, type Found, openWalk } from './walk.ts';

/** What was looked at. */
export interface Verified {
  readonly logs: number;
  readonly entries: number;
  /** Entries of a release before 0.2.0 that no entry of this one stands behind yet. */
  readonly untagged: number;
  readonly findings: number;
}

export interface Verification {
  readonly store: Pick<LogStore, 'heads' | 'head' | 'entries' | 'entriesOf' | 'salts'>;
  readonly keys: LogKeys;
  /** What was said outside of the database. */
  readonly checkpoints: readonly Checkpoint[];
  /** The time of who verifies, in milliseconds since the epoch. */
  now(): number;
  onFinding(finding: Found): void;
}

const PAGE = 1_000;
/** How often a log is walked again because its oldest entries went meanwhile. */
const WALKS_MAX = 5;

/**
 * Looks at every entry of every log: whether it is the one that was tagged, in its place, whether any is missing, and
 * whether all is there that checkpoints tell of. What nobody but a checkpoint can tell is not seen without one: an end that
 * was cut off together with what says where it is, an older database in the place of a newer one, and a log that was written
 * anew, or whose beginning was moved, by who has the master key. What is written meanwhile is not looked at.
 */
export async function verifyLogs(asked: Verification): Promise<Verified> {
  const told = Map.groupBy(asked.checkpoints, ({ log }) => log);
  const horizon = horizonOf(asked.checkpoints);
  const beginnings = await readBeginnings(asked.store, asked.keys);
  const sum = { logs: 0, entries: 0, untagged: 0, findings: 0 };
  const tell = (found: Found): void => {
    sum.findings += 1;
    asked.onFinding(found);
  };
  for await (const head of headsOf(asked.store)) {
    const walked = await walkStill({ ...asked, checkpoints: told.get(head.log) ?? [], horizon }, head);
    sum.logs += 1;
    sum.entries += walked.entries;
    sum.untagged += walked.untagged;
    for (const found of walked.findings) tell(found);
    beginnings.judge(head, (seq, says) => tell({ log: head.log, seq, says }));
    told.delete(head.log);
  }
  for (const found of beginnings.missing()) tell(found);
  for (const [log, [checkpoint]] of told) {
    tell({ log, seq: checkpoint?.position, says: 'a checkpoint tells of this log, and it is not there' });
  }
  return sum;
}

/** The head of every log. Others get their turn between pages. */
export async function* headsOf(store: Pick<LogStore, 'heads'>): AsyncGenerator<LogHead> {
  let heads = await store.heads(undefined, PAGE);
  while (heads.length > 0) {
    yield* heads;
    await new Promise((resolve) => setImmediate(resolve));
    heads = await store.heads(heads.at(-1)?.log, PAGE);
  }
}

interface Walked {
  readonly entries: number;
  readonly untagged: number;
  readonly findings: readonly Found[];
}

/** What one log is looked at with: the checkpoints are its own. */
interface OfOneLog extends Verification {
  readonly horizon: Horizon;
}

/** Walks a log that keeps its beginning meanwhile. */
async function walkStill(asked: OfOneLog, head: LogHead): Promise<Walked> {
  for (let walks = 1; ; walks += 1) {
    const walked = await walkOnce(asked, head);
    const now = await asked.store.head(head.log);
    if (now?.chain?.anchor.seq === head.chain?.anchor.seq || walks === WALKS_MAX || !now) return walked;
    head = now;
  }
}

async function walkOnce(
  { store, keys, checkpoints, horizon, now }: OfOneLog,
  head: LogHead,
): Promise<Walked> {
  const { log } = head;
  const findings: Found[] = [];
  const find: Find = (seq, says) => findings.push({ log, seq, says });
  const walk = openWalk(head, { checkpoints, removableBefore: horizon(now()) }, keys, find);
  const persons = log === NIL_UUID ? undefined : openPersonsJudge(log, store, keys, find);
  let last = head.chain?.anchor.seq ?? 0;
  while (last < head.seq) {
    const page = (await store.entries(log, last, PAGE)).filter(({ seq }) => seq <= head.seq);
    if (page.length === 0) break;
    walk.take(page);
    await persons?.take(page);
    last = page.at(-1)?.seq ?? last;
  }
  walk.end();
  await persons?.end();
  await judgeBeyond(store, head, find);
  return { entries: walk.tagged, untagged: walk.untagged, findings };
}

/** What stands behind the clock of a log was put there: the clock moves before anything is written. */
async function judgeBeyond(store: Verification['store'], { log, seq }: LogHead, find: Find): Promise<void> {
  const [beyond] = await store.entries(log, seq, 1);
  if (!beyond) return;
  const now = await store.head(log);
  if (now && beyond.seq > now.seq) find(beyond.seq, 'it stands behind the clock of the log');
}
