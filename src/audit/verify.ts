import { NIL_UUID, type Uuid } from '../domain/id.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { LogKeys } from './keys.ts';
import type { LogHead, LogStore, StoredEntry } from './port.ts';
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
  readonly store: Pick<LogStore, 'heads' | 'head' | 'entries' | 'salts' | 'erasures'>;
  readonly keys: LogKeys;
  /** What was said outside of the database. */
  readonly checkpoints: readonly Checkpoint[];
  onFinding(finding: Found): void;
}

const PAGE = 1_000;
/** How often a log is walked again because its oldest entries went meanwhile. */
const WALKS_MAX = 5;

/**
 * Looks at every entry of every log: whether it is the one that was tagged, in its place, whether any is missing, and
 * whether all is there that checkpoints tell of. What nobody but a checkpoint can tell is not seen without one: an end that
 * was cut off together with what says where it is, an older database in the place of a newer one, and a log that was written
 * anew by who has the master key. What is written meanwhile is not looked at.
 */
export async function verifyLogs(asked: Verification): Promise<Verified> {
  const told = Map.groupBy(asked.checkpoints, ({ log }) => log);
  const erased = await erasedUsers(asked.store);
  const sum = { logs: 0, entries: 0, untagged: 0, findings: 0 };
  const tell = (found: Found): void => {
    sum.findings += 1;
    asked.onFinding(found);
  };
  for await (const head of headsOf(asked.store)) {
    const walked = await walkStill(asked, head, told.get(head.log) ?? [], erased);
    sum.logs += 1;
    sum.entries += walked.entries;
    sum.untagged += walked.untagged;
    for (const found of walked.findings) tell(found);
    told.delete(head.log);
  }
  for (const [log, [checkpoint]] of told) {
    tell({ log, seq: checkpoint?.position, says: 'a checkpoint tells of this log, and it is not there' });
  }
  return sum;
}

/** The head of every log. */
export async function* headsOf(store: Pick<LogStore, 'heads'>): AsyncGenerator<LogHead> {
  let heads = await store.heads(undefined, PAGE);
  while (heads.length > 0) {
    yield* heads;
    heads = await store.heads(heads.at(-1)?.log, PAGE);
  }
}

interface Walked {
  readonly entries: number;
  readonly untagged: number;
  readonly findings: readonly Found[];
}

/** Walks a log that keeps its beginning meanwhile. */
async function walkStill(
  asked: Verification,
  head: LogHead,
  checkpoints: readonly Checkpoint[],
  erased: ReadonlySet<string>,
): Promise<Walked> {
  for (let walks = 1; ; walks += 1) {
    const walked = await walkOnce(asked, head, checkpoints, erased);
    const now = await asked.store.head(head.log);
    if (now?.chain?.anchor.seq === head.chain?.anchor.seq || walks === WALKS_MAX || !now) return walked;
    head = now;
  }
}

async function walkOnce(
  { store, keys }: Verification,
  head: LogHead,
  checkpoints: readonly Checkpoint[],
  erased: ReadonlySet<string>,
): Promise<Walked> {
  const { log } = head;
  const findings: Found[] = [];
  const find: Find = (seq, says) => findings.push({ log, seq, says });
  const walk = openWalk(head, checkpoints, keys, find);
  const persons = { store, keys, erased };
  for (let last = head.chain?.anchor.seq ?? 0; last < head.seq; ) {
    const page = (await store.entries(log, last, PAGE)).filter(({ seq }) => seq <= head.seq);
    if (page.length === 0) break;
    walk.take(page);
    if (log !== NIL_UUID) await judgePersons(log, page, persons, find);
    last = page.at(-1)?.seq ?? last;
  }
  walk.end();
  return { entries: walk.tagged, untagged: walk.untagged, findings };
}

interface Persons {
  readonly store: Pick<LogStore, 'salts'>;
  readonly keys: LogKeys;
  readonly erased: ReadonlySet<string>;
}

/** Personal values that nobody can read any more are those of users who were erased. */
async function judgePersons(
  realm: Uuid,
  entries: readonly StoredEntry[],
  { store, keys, erased }: Persons,
  find: Find,
): Promise<void> {
  const told = entries.filter(({ columns }) => columns.personal instanceof Uint8Array);
  const users = new Set(told.map(({ columns }) => columns.user_id as Uuid));
  const salts = users.size > 0 ? await store.salts(realm, [...users]) : new Map<Uuid, Uint8Array>();
  for (const { seq, columns } of told) {
    const user = columns.user_id as Uuid;
    const salt = salts.get(user);
    if (salt && !opens(keys, salt, { realm, user }, columns.personal as Uint8Array)) {
      find(seq, 'its personal values do not open');
    }
    if (!salt && !erased.has(nameOf(realm, user))) {
      find(seq, 'its personal values cannot be read, and its user was not erased');
    }
  }
}

function opens(
  keys: LogKeys,
  salt: Uint8Array,
  person: Parameters<LogKeys['decrypt']>[1],
  encrypted: Uint8Array,
): boolean {
  try {
    keys.decrypt(salt, person, encrypted);
    return true;
  } catch {
    return false;
  }
}

function nameOf(realm: Uuid, user: Uuid): string {
  return `${realm} ${user}`;
}

async function erasedUsers(store: Pick<LogStore, 'erasures'>): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  let page = await store.erasures({ realm: NIL_UUID, user: NIL_UUID }, PAGE);
  while (page.length > 0) {
    for (const { realm, user } of page) found.add(nameOf(realm, user));
    page = await store.erasures(page.at(-1) as (typeof page)[number], PAGE);
  }
  return found;
}
