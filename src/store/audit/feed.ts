import type { SequencedChange } from '../../domain/change.ts';
import { NIL_UUID, type Revision, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import type { FeedStore, RealmHead } from '../../events/feed/port.ts';
import type { Dialect } from '../dialect.ts';
import { all, type Long, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

/** The columns of a change that the feed reports. */
export const CHANGE_ROW =
  'realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at';

export interface ChangeRow {
  readonly realm_id: string;
  readonly seq: Long;
  readonly event: string;
  readonly user_id: string | null;
  readonly record_id: string;
  readonly revision: string;
  readonly members: string;
  readonly actor: string;
  readonly request_id: string | null;
  readonly at: Long;
}

export function changeOfRow(row: ChangeRow): SequencedChange {
  return {
    event: row.event,
    realm: row.realm_id as Uuid,
    user: (row.user_id ?? undefined) as Uuid | undefined,
    id: row.record_id as Uuid,
    revision: row.revision as AnyRecord['revision'],
    members: row.members === '' ? [] : row.members.split(' '),
    actor: row.actor,
    requestId: row.request_id ?? undefined,
    // The feed does not report it.
    address: undefined,
    at: Number(row.at),
    seq: Number(row.seq),
  };
}

/** A clock that was created but never advanced has no change. The nil UUID has audit entries and no changes. */
const SELECT = `select k.realm_id, c.seq, c.revision, c.at from realm_clock k
  join change c on c.realm_id = k.realm_id and c.seq = k.seq`;
const HEADS = `${SELECT} where k.realm_id > ? order by k.realm_id limit ?`;
/** Realms in one query. */
const REALMS_PER_QUERY = LIMITS.pageRecordsMax;
const SOME_HEADS = `${SELECT} where k.realm_id in (${Array.from({ length: REALMS_PER_QUERY }, () => '?').join(', ')})
  order by k.realm_id limit ?`;

/** The index is named, because an engine without statistics would read all changes of the realm. */
const changesOf = ({ lists }: Pick<Dialect, 'lists'>) => `select ${CHANGE_ROW}
  from change${lists.indexHint('change_of_user')}
  where realm_id = ? and user_id = ? and seq < ? order by seq desc limit ?`;

interface HeadRow {
  readonly realm_id: Uuid;
  readonly seq: Long;
  readonly revision: Revision;
  readonly at: Long;
}

/** The heads of realms, and the changes of users. */
export function openFeedStore(
  { read }: Pick<Transactions, 'read'>,
  dialect: Pick<Dialect, 'lists'>,
): FeedStore {
  const ofUser = changesOf(dialect);
  return {
    heads: (after, limit, only) => read(() => headsOf(after ?? NIL_UUID, limit, only)),
    userChanges: ({ realm, id }, before, limit) =>
      read(function* () {
        return (yield* all<ChangeRow>(ofUser, realm, id, before, limit)).map(changeOfRow);
      }),
  };
}

function* headsOf(after: Uuid, limit: number, only?: readonly Uuid[]): Work<readonly RealmHead[]> {
  if (!only) return (yield* all<HeadRow>(HEADS, after, limit)).map(headOf);
  const wanted = only.filter((realm) => realm > after).sort();
  const found: RealmHead[] = [];
  for (let start = 0; start < wanted.length && found.length < limit; start += REALMS_PER_QUERY) {
    // Unused placeholders repeat the first realm.
    const placeholders = Array.from(
      { length: REALMS_PER_QUERY },
      (_, at) => wanted[start + at] ?? (wanted[start] as Uuid),
    );
    found.push(...(yield* all<HeadRow>(SOME_HEADS, ...placeholders, limit - found.length)).map(headOf));
  }
  return found;
}

function headOf({ realm_id, seq, revision, at }: HeadRow): RealmHead {
  return { realm: realm_id, seq: Number(seq), revision, at: Number(at) };
}

/** Every statement about heads and the changes of a user. */
export const feedTexts = (dialect: Pick<Dialect, 'lists'>): readonly string[] => [
  ...[HEADS, SOME_HEADS, changesOf(dialect)],
];
