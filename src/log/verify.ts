import { attempt } from '../model/attempt.ts';
import { NIL_UUID, type Uuid } from '../model/id.ts';
import { pagesOf } from '../model/pages.ts';
import { user as users } from '../model/resources.ts';
import { isChainStart } from './chain.ts';
import {
  type LogFinding,
  openChainVerifier,
  type ReportFinding,
  retentionCutoffOf,
} from './chain_verifier.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './keys.ts';
import type { StoredEntry } from './store/entry_row.ts';
import type { LogHead, LogReader, LogStore } from './store/reading.ts';
import { openPersonalValues, pagesAfter } from './stored_entries.ts';

export interface VerificationOptions {
  readonly store: LogReader;
  readonly keys: LogKeys;
  /** The checkpoints, recorded outside of the database. */
  readonly checkpoints: readonly Checkpoint[];
  /** The time of the verifier, in milliseconds since the epoch. */
  now(): number;
}

const PAGE = 1_000;
/** Attempts to verify a log whose oldest entries are removed meanwhile. */
const ATTEMPTS_MAX = 5;

/**
 * Verifies every entry of every log: its tag, its position, missing entries, and agreement with the
 * checkpoints. Without checkpoints these are not found: an end cut off together with the stored head, an
 * older database in place of a newer one, and a log rewritten or a start moved with the master key. Entries
 * written meanwhile are not verified.
 */
export async function verifyLogs(options: VerificationOptions) {
  const checkpointsByLog = Map.groupBy(options.checkpoints, ({ log }) => log);
  const retentionCutoff = retentionCutoffOf(options.checkpoints);
  const logStarts = await readLogStarts(options.store, options.keys);
  const findings: LogFinding[] = [];
  const result = { logs: 0, entries: 0, findings };
  for await (const head of headsOf(options.store)) {
    const verified = await verifyUntilStable(
      { ...options, checkpoints: checkpointsByLog.get(head.log) ?? [], retentionCutoff },
      head,
    );
    result.logs += 1;
    result.entries += verified.entries;
    for (const found of verified.findings) findings.push(found);
    logStarts.check(head, (seq, message) => findings.push({ log: head.log, seq, message }));
    checkpointsByLog.delete(head.log);
  }
  for (const found of logStarts.missing()) findings.push(found);
  for (const [log, [checkpoint]] of checkpointsByLog) {
    const message = 'a checkpoint covers this log, but the log does not exist';
    findings.push({ log, seq: checkpoint?.position, message });
  }
  return result;
}

/** The head of every log. Yields to other work between pages. */
export async function* headsOf(store: Pick<LogStore, 'heads'>): AsyncGenerator<LogHead> {
  for await (const heads of pagesOf<LogHead>((last) => store.heads(last?.log, PAGE))) {
    yield* heads;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Options for one log, with its own checkpoints. */
type LogVerificationOptions = VerificationOptions & { retentionCutoff: ReturnType<typeof retentionCutoffOf> };

/** Verifies a log, again if its start moved meanwhile. */
async function verifyUntilStable(options: LogVerificationOptions, head: LogHead) {
  for (let attempt = 1; ; attempt += 1) {
    const verified = await verifyLogOnce(options, head);
    const now = await options.store.head(head.log);
    if (now?.chain?.anchor.seq === head.chain?.anchor.seq || attempt === ATTEMPTS_MAX || !now)
      return verified;
    head = now;
  }
}

async function verifyLogOnce(
  { store, keys, checkpoints, retentionCutoff, now }: LogVerificationOptions,
  head: LogHead,
) {
  const { log } = head;
  const findings: LogFinding[] = [];
  const report: ReportFinding = (seq, says) => findings.push({ log, seq, message: says });
  const verifier = openChainVerifier(
    head,
    { checkpoints, removableBefore: retentionCutoff(now()) },
    keys,
    report,
  );
  const personalValues = log === NIL_UUID ? undefined : openPersonalValuesCheck(log, store, keys, report);
  const read = (after: number) => store.entries(log, after, PAGE);
  for await (const page of pagesAfter(head.chain?.anchor.seq ?? 0, read, head.seq)) {
    for (const entry of page) verifier.add(entry);
    await personalValues?.add(page);
  }
  verifier.end();
  await personalValues?.end();
  await checkBeyondHead(store, head, report);
  return { entries: verifier.entries, findings };
}

/** Checks for entries after the head: the head moves before an entry is written. */
async function checkBeyondHead(
  store: VerificationOptions['store'],
  { log, seq }: LogHead,
  report: ReportFinding,
): Promise<void> {
  const [beyond] = await store.entries(log, seq, 1);
  if (!beyond) return;
  const now = await store.head(log);
  if (now && beyond.seq > now.seq) report(beyond.seq, 'this entry is after the head of the log');
}

/** The event of an erasure. */
const ERASED_EVENT = `${users.name}.erased`;

/**
 * Checks the personal values in the log of a realm: values that cannot be decrypted must belong to users
 * erased later.
 */
function openPersonalValuesCheck(
  realm: Uuid,
  store: Pick<LogStore, 'userKeys' | 'entriesOf'>,
  keys: Pick<LogKeys, 'decrypt'>,
  report: ReportFinding,
) {
  /** Sequence numbers of entries that do not decrypt, by user. */
  const unreadable = new Map<Uuid, number[]>();
  const erasedAt = new Map<Uuid, number>();
  let last = 0;

  /** The sequence number of the last erasure of a user, also after the verified part. */
  async function erasureOf(user: Uuid): Promise<number> {
    let seq = erasedAt.get(user) ?? 0;
    const read = (after: number) => store.entriesOf({ realm, user }, 'realm', after, PAGE);
    for await (const entries of pagesAfter(last, read))
      for (const entry of entries) if (entry.columns.event === ERASED_EVENT) seq = entry.seq;
    return seq;
  }

  return {
    async add(entries: readonly StoredEntry[]): Promise<void> {
      const open = await openPersonalValues(realm, entries, store, keys);
      for (const entry of entries) {
        const { seq, columns } = entry;
        const user = columns.user_id as Uuid | null;
        // An entry with personal values and no user was tampered with, which its tag shows.
        if (user === null) continue;
        if (columns.event === ERASED_EVENT) erasedAt.set(user, seq);
        if (typeof open(entry) === 'string') unreadable.set(user, [...(unreadable.get(user) ?? []), seq]);
      }
      last = entries.at(-1)?.seq ?? last;
    },
    async end(): Promise<void> {
      for (const [user, seqs] of unreadable) {
        const erased = await erasureOf(user);
        for (const seq of seqs) {
          if (seq > erased)
            report(
              seq,
              'the personal values of this entry cannot be decrypted, and its user was not erased later',
            );
        }
      }
    },
  };
}

/**
 * Reads the entries that record where realm logs start, as far as retention has not deleted them, to check the logs against the
 * installation log.
 */
async function readLogStarts(store: Pick<LogStore, 'entries' | 'head'>, keys: Pick<LogKeys, 'anchor'>) {
  const installation = await store.head(NIL_UUID);
  const anchor = installation?.chain?.anchor;
  const isWhole = anchor !== undefined && isChainStart(keys, NIL_UUID, anchor);
  const startsByLog = new Map<Uuid, number[]>();
  const read = (after: number) => store.entries(NIL_UUID, after, PAGE);
  for await (const entries of pagesAfter(anchor?.seq ?? 0, read)) {
    for (const { columns } of entries) {
      if (columns.action !== 'log.begun') continue;
      const realm = columns.realm_id as Uuid;
      // NaN if the entry was edited, which verification reports elsewhere.
      const start = attempt(() => Number(JSON.parse(String(columns.detail)).after)) ?? Number.NaN;
      startsByLog.getOrInsert(realm, []).push(start);
    }
  }
  return {
    /** Checks an existing log, once. */
    check({ log, chain }: LogHead, find: ReportFinding): void {
      if (log === NIL_UUID) return;
      const starts = startsByLog.get(log) ?? [];
      startsByLog.delete(log);
      if (starts.length > 1) find(starts[1], `the log was recreated: it was started ${starts.length} times`);
      if (!chain && starts.length > 0) find(starts[0], 'this log was started, but its chain was removed');
      if (!chain || !isChainStart(keys, log, chain.anchor)) return;
      const isRecorded = starts.includes(chain.anchor.seq);
      if (!isRecorded && (starts.length > 0 || isWhole)) {
        find(chain.anchor.seq, 'the installation log does not record that this log starts here');
      }
    },
    /** Logs whose start is recorded and which do not exist. */
    missing: (): readonly LogFinding[] =>
      [...startsByLog].map(([log, [seq]]) => ({
        log,
        seq,
        message: 'this log was started, but it does not exist',
      })),
  };
}
