import type { Change } from '../domain/change.ts';
import type { Uuid } from '../domain/id.ts';
import { first, type Long, run, type Work } from './work.ts';

const ADVANCE = `insert into realm_clock (realm_id, seq) values (?, ?)
  on conflict (realm_id) do update set seq = realm_clock.seq + excluded.seq returning seq`;
const INSERT = `insert into change
  (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Gives changes their places: one step of each realm's clock for all of its changes, then the rows. */
export function* sequence(changes: readonly Change[]): Work<void> {
  for (const [realm, ofRealm] of Map.groupBy(changes, (change): Uuid => change.realm)) {
    const clock = yield* first<{ seq: Long }>(ADVANCE, realm, ofRealm.length);
    let seq = Number(clock?.seq ?? 0) - ofRealm.length;
    for (const { event, user, id, revision, members, actor, requestId, at } of ofRealm) {
      seq += 1;
      const named = members.join(' ');
      yield* run(INSERT, realm, seq, event, user ?? null, id, revision, named, actor, requestId ?? null, at);
    }
  }
}
