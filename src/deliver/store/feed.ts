import { type ChangeRow, changeIn, inOrder, userEntriesText } from '../../log/store/entry_row.ts';
import { NIL_UUID, type Revision, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { all, type Long, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';

/** The newest change of a realm. */
export interface RealmHead {
  readonly realm: Uuid;
  readonly seq: number;
  readonly revision: Revision;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A clock that was created but never advanced has no change. The nil UUID has audit entries and no changes. */
const select = ({ realm }: Dialect) => `select k.realm_id, e.seq, e.revision, e.at from realm_clock k
  join log_entry e on e.realm_id = ${realm('k.realm_id')} and e.seq = k.seq`;
/** Every statement about heads and the changes of a user. */
export const feedTexts = (dialect: Dialect) => ({
  heads: `${select(dialect)} where k.realm_id > ? order by k.realm_id limit ?`,
  someHeads: `${select(dialect)}
    where k.realm_id > ? and ${dialect.lists.isAmong('k.realm_id')} order by k.realm_id limit ?`,
  userChanges: userEntriesText('before', 'change', dialect),
});

interface HeadRow {
  readonly realm_id: Uuid;
  readonly seq: Long;
  readonly revision: Uint8Array;
  readonly at: Long;
}

/** Reads the heads of realms, and the changes of users, for the feed. */
export function openFeedStore({ read }: Pick<Transactions, 'read'>, dialect: Dialect) {
  const sql = feedTexts(dialect);
  return {
    /**
     * The heads of realms after `after` in the order of their IDs, at most `limit`; with `only`, of these realms. A deleted
     * realm still has one.
     */
    heads: (after: Uuid | undefined, limit: number, only?: readonly Uuid[]) =>
      read(function* (): Work<readonly RealmHead[]> {
        const first = after ?? NIL_UUID;
        const rows = only
          ? yield* all<HeadRow>(sql.someHeads, first, dialect.lists.among(only), limit)
          : yield* all<HeadRow>(sql.heads, first, limit);
        return rows.map(headOf);
      }),
    /** The changes of a user and its links before a sequence number, newest first, at most `limit`. */
    userChanges: (
      { realm, id }: { readonly realm: Uuid; readonly id: Uuid },
      before: number,
      limit: number,
    ) =>
      read(function* (): Work<readonly SequencedChange[]> {
        // A run that ends at or after `before` may begin before it.
        const [end, runs] = [before + LIMITS.logRunEntriesMax, limit + LIMITS.logRunEntriesMax];
        const rows = yield* all<ChangeRow>(sql.userChanges, realm, id, end, runs);
        const changes = inOrder(rows).map((row) => changeIn(realm, row));
        return changes
          .filter(({ seq }) => seq < before)
          .slice(-limit)
          .reverse();
      }),
  };
}

function headOf({ realm_id, seq, revision, at }: HeadRow): RealmHead {
  return { realm: realm_id, seq: Number(seq), revision: revision.toHex() as Revision, at: Number(at) };
}

export type FeedStore = ReturnType<typeof openFeedStore>;
