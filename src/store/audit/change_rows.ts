import type { SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import type { AnyRecord } from '../../domain/resource.ts';
import type { Long } from '../work.ts';

/** What is read of a change to tell it. */
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
    // No table keeps it.
    address: undefined,
    at: Number(row.at),
    seq: Number(row.seq),
  };
}
