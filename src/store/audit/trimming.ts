import { isAnchorValid, resumeChain, sealAnchor } from '../../audit/chain.ts';
import type { LogKeys } from '../../audit/log_keys.ts';
import type { ChainLink, LogHead, StoredEntry } from '../../audit/port.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { all, execute, type Work, type WorkResult } from '../work.ts';
import { ACT_COLUMNS, CHANGE_COLUMNS } from './log.ts';
import { entryFrom, type Row } from './log_rows.ts';

const OLD_CHANGES = `select ${CHANGE_COLUMNS}, tag from change
  where realm_id = ? and seq > ? and seq <= ? order by seq limit ?`;
const OLD_ACTS = `select ${ACT_COLUMNS}, tag from act where seq > ? and seq <= ? order by seq limit ?`;
const REMOVE_HISTORY = `delete from change where realm_id = ?1 and seq in (
  select seq from change where realm_id = ?1 and seq <= ?2 and at < ?3 order by seq limit ?4)`;
const REMOVE_CHANGES = 'delete from change where realm_id = ? and seq > ? and seq <= ?';
const REMOVE_ACTS = 'delete from act where seq <= ?';
const MOVE_ANCHOR = `update realm_clock set anchor_seq = ?, anchor_tag = ?, anchor_entries = ?, anchor_mac = ?
  where realm_id = ?`;

/**
 * Removes the oldest entries of a log that are older than `before`: first what an older release wrote before the chain
 * began, then tagged ones, behind which the anchor moves. LIMITS.cascadeRecordsMax of them at most. The newest that is old
 * stays: it is the proof that what stood before it was old. Throws where one is not what was tagged: nobody is helped to
 * remove that.
 */
export function* trimLog(
  keys: LogKeys,
  { log: which, chain }: LogHead,
  before: number,
): Work<WorkResult<number>> {
  if (!chain) return gone(0);
  if (!isAnchorValid(keys, which, chain.anchor))
    throw new Error('the beginning of a log was moved by a stranger');
  const history =
    which === NIL_UUID ? 0 : yield* execute(REMOVE_HISTORY, which, chain.anchor.seq, before, MOST);
  if (history > 0) return gone(history);
  const rows = (yield* oldest(which, chain.anchor.seq, chain.end.seq)).map(entryFrom);
  const young = rows.findIndex(({ at }) => at >= before);
  const old = (young < 0 ? rows : rows.slice(0, young)).slice(0, -1);
  const end = endOf(keys, chain.anchor, old);
  if (old.length === 0) return gone(0);
  const anchor = sealAnchor(keys, which, end);
  if (which === NIL_UUID) yield* execute(REMOVE_ACTS, anchor.seq);
  else yield* execute(REMOVE_CHANGES, which, chain.anchor.seq, anchor.seq);
  yield* execute(MOVE_ANCHOR, anchor.seq, anchor.tag, anchor.entries, anchor.mac, which);
  return gone(old.length);
}

const MOST = LIMITS.cascadeRecordsMax;

function gone(rows: number): WorkResult<number> {
  return { value: rows, keep: rows > 0, rows };
}

/** Where the chain is behind these entries. Throws where one is not what was tagged: nobody is helped to remove that. */
function endOf(keys: LogKeys, anchor: ChainLink, entries: readonly StoredEntry[]): ChainLink {
  const chain = resumeChain(keys, anchor);
  for (const { seq, columns, tag } of entries) {
    const expected = chain.next(seq, Object.values(columns));
    if (!tag || Buffer.compare(tag, expected) !== 0)
      throw new Error('an old entry of a log was edited by a stranger');
  }
  return chain;
}

/** The oldest tagged entries behind a place: as many as may go, and the one that stays. */
function oldest(which: Uuid, after: number, end: number): Work<readonly Row[]> {
  return which === NIL_UUID
    ? all<Row>(OLD_ACTS, after, end, MOST + 1)
    : all<Row>(OLD_CHANGES, which, after, end, MOST + 1);
}

/** Every text that keeps a log short. */
export const TRIM_TEXTS: readonly string[] = [
  ...[OLD_CHANGES, OLD_ACTS, REMOVE_HISTORY, REMOVE_CHANGES, REMOVE_ACTS, MOVE_ANCHOR],
];
