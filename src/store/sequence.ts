import type { Change } from '../domain/change.ts';
import type { Uuid } from '../domain/id.ts';
import type { SqlValue } from './statements.ts';
import { first, type Long, runAll, type Work } from './work.ts';

const ADVANCE = `insert into realm_clock (realm_id, seq) values (?, ?)
  on conflict (realm_id) do update set seq = realm_clock.seq + excluded.seq returning seq`;
const INSERT = `insert into change
  (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** So many rows are written with one wait. */
const TOGETHER = 100;

/** Gives changes their places: one step of each realm's clock for all of its changes, then the rows. */
export function* sequence(changes: readonly Change[]): Work<void> {
  for (const [realm, ofRealm] of Map.groupBy(changes, (change): Uuid => change.realm)) {
    const clock = yield* first<{ seq: Long }>(ADVANCE, realm, ofRealm.length);
    let seq = Number(clock?.seq ?? 0) - ofRealm.length;
    for (let start = 0; start < ofRealm.length; start += TOGETHER) {
      yield* runAll(
        ofRealm.slice(start, start + TOGETHER).map((change) => {
          seq += 1;
          return { text: INSERT, values: rowOf(change, seq) };
        }),
      );
    }
  }
}

function rowOf(change: Change, seq: number): readonly SqlValue[] {
  const { event, realm, user, id, revision, members, actor, requestId, at } = change;
  return [realm, seq, event, user ?? null, id, revision, members.join(' '), actor, requestId ?? null, at];
}
