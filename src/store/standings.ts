import { NIL_UUID, type Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Moved, Standing, Standings } from '../webhooks/port.ts';
import type { Dialect } from './dialect.ts';
import type { Transactions } from './transactions.ts';
import { all, first, type Long } from './work.ts';

const COLUMNS = `k.realm_id, k.moved, k.seq as head, coalesce(p.seq, 0) as seq, coalesce(p.attempts, 0) as attempts,
  coalesce(p.next_at, 0) as next_at, coalesce(p.failed_seq, 0) as failed_seq`;
const STANDING = `select ${COLUMNS} from realm_clock k
  left join webhook_progress p on p.webhook_id = ? and p.realm_id = k.realm_id`;
const LATELY = `${STANDING} where (k.moved, k.realm_id) > (?, ?) and k.moved < ? and k.realm_id <> ?
  order by k.moved, k.realm_id limit ?`;
const BEHIND = `${STANDING} where k.realm_id > ? order by k.realm_id limit ?`;
/** So many realms are looked at together. */
const TOGETHER = LIMITS.webhookClocksAtOnce;
const THESE = `${STANDING} where k.realm_id in (${Array.from({ length: TOGETHER }, () => '?').join(', ')})
  order by k.realm_id`;
const DUE = `select ${COLUMNS} from webhook_progress p join realm_clock k on k.realm_id = p.realm_id
  where p.webhook_id = ? and p.next_at > 0 and p.next_at <= ? order by p.next_at limit ?`;

/** How far a receiver is in realms, found by what is new or due and never by walking over what is neither. */
export function openStandings({ read }: Pick<Transactions, 'read'>, { moves }: Dialect): Standings {
  return {
    movedUpTo: () =>
      read(function* () {
        return Number((yield* first<BoundsRow>(moves.bounds))?.begins);
      }),
    moved: (webhookId, { moved, realm }, limit) =>
      read(function* () {
        // First, so that nothing becomes visible between the two that is not found by the next one.
        const { begins, ends } = (yield* first<BoundsRow>(moves.bounds)) as BoundsRow;
        const place = [moved, realm, Number(ends), NIL_UUID] as const;
        const rows = yield* all<StandingRow>(LATELY, webhookId, ...place, limit);
        return { rows: rows.map(movedOf), upTo: Number(begins), end: Number(ends) };
      }),
    standingsBehind: (webhookId, after, limit) =>
      read(function* () {
        return (yield* all<StandingRow>(BEHIND, webhookId, after, limit)).map(standingOf);
      }),
    standingsOf: (webhookId, realms) =>
      read(function* () {
        const places = Array.from({ length: TOGETHER }, (_, at) => realms[at] ?? NIL_UUID);
        const rows = yield* all<StandingRow>(THESE, webhookId, ...places);
        return rows.filter(({ realm_id }) => realm_id !== NIL_UUID).map(standingOf);
      }),
    due: (webhookId, now, limit) =>
      read(function* () {
        return (yield* all<StandingRow>(DUE, webhookId, now, limit)).map(standingOf);
      }),
  };
}

interface BoundsRow {
  readonly begins: Long;
  readonly ends: Long;
}

interface StandingRow {
  readonly realm_id: Uuid;
  readonly moved: Long;
  readonly head: Long;
  readonly seq: Long;
  readonly attempts: number;
  readonly next_at: Long;
  readonly failed_seq: Long;
}

function standingOf({ realm_id, head, seq, attempts, next_at, failed_seq }: StandingRow): Standing {
  const places = { head: Number(head), seq: Number(seq), failedSeq: Number(failed_seq) };
  return { realm: realm_id, ...places, attempts, nextAt: Number(next_at) };
}

function movedOf(row: StandingRow): Moved {
  return { ...standingOf(row), moved: Number(row.moved) };
}

/** Every text about standings. */
export const standingTexts = ({ moves }: Dialect): readonly string[] => [
  ...[LATELY, BEHIND, THESE, DUE, moves.bounds],
];
