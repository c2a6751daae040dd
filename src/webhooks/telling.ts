import type { SequencedChange } from '../domain/change.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { waitMsAfter } from './backoff.ts';
import { isSome, type Line, type Some, sendSome } from './line.ts';
import { type Portion, portionsOf } from './message.ts';
import type { Delivery, Progress, Standing } from './port.ts';

/** A realm with more than so many pages lets others have its place. */
const PAGES_A_TURN = 10;

/** How far a realm is told, how often what comes next was tried, and how far that went. */
type Place = Pick<Standing, 'seq' | 'attempts' | 'failedSeq'>;

const TOLD = { attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 };

/** Tells a receiver the changes of a realm in their order, until there are no more for now, or one is not received. */
export async function tellRealm(line: Line, standing: Standing): Promise<void> {
  const { realm } = standing;
  let place: Place = standing;
  // What stood there may be nothing that it is to be told any more.
  line.underWay.delete(realm);
  for (let page = 0; page < PAGES_A_TURN; page += 1) {
    const rows = await line.rooms.changes(realm, place.seq, LIMITS.webhookEventsMax);
    noteGap(line, place.seq, rows[0]);
    for (const portion of portionsOf(rows, line.webhook())) {
      if (!(await tellPortion(line, realm, portion, place))) return;
      place = { seq: portion.upTo, attempts: 0, failedSeq: 0 };
    }
    if (rows.length < LIMITS.webhookEventsMax) return;
  }
}

/** Answers whether the realm is told as far as the portion goes. */
async function tellPortion(
  line: Line,
  realm: Uuid,
  { changes, upTo }: Portion,
  from: Place,
): Promise<boolean> {
  let { seq, attempts, failedSeq } = from;
  let left = changes;
  while (isSome(left)) {
    const [{ at }] = left;
    line.underWay.set(realm, at);
    const delivery = await sendSome(line, untilFailed(left, failedSeq), attempts + 1);
    line.underWay.delete(realm);
    if (!delivery) return false;
    if (delivery.outcome !== 'delivered' && !isGivenUp(line, delivery, { seq, behindSince: at }))
      return false;
    seq = delivery.lastSeq;
    attempts = 0;
    failedSeq = 0;
    line.ledger.noteProgress({ ...TOLD, realm, seq });
    left = left.filter((change) => change.seq > delivery.lastSeq);
  }
  if (upTo > seq) line.ledger.noteProgress({ ...TOLD, realm, seq: upTo });
  return true;
}

/** What failed is sent again as it was, under its identifier, also where more has happened since. */
function untilFailed(changes: Some<SequencedChange>, failedSeq: number): Some<SequencedChange> {
  const failed = changes.filter(({ seq }) => seq <= failedSeq);
  return isSome(failed) ? failed : changes;
}

/** What comes of a failure: it is tried again later, or after very many times given up, so that the feed goes on. */
function isGivenUp(
  { rooms, ledger, webhookId }: Line,
  delivery: Delivery,
  standing: Pick<Progress, 'seq' | 'behindSince'>,
): boolean {
  const { realm, firstSeq, lastSeq, attempt: attempts } = delivery;
  const at = rooms.ambient.now();
  if (attempts >= LIMITS.webhookAttemptsMax) {
    ledger.noteLetter({ webhookId, realm, firstSeq, lastSeq, attempts, at, redeliveredAt: undefined });
    rooms.onGivenUp(webhookId);
    return true;
  }
  const nextAt = at + waitMsAfter(attempts, Math.random());
  ledger.noteProgress({ ...standing, realm, attempts, nextAt, failedSeq: lastSeq });
  return false;
}

/** Changes that became too old before they were told: who is told nothing of them must be able to see it. */
function noteGap({ rooms, ledger, webhookId }: Line, seq: number, next: SequencedChange | undefined): void {
  if (!next || next.seq === seq + 1) return;
  const lost = { webhookId, realm: next.realm, firstSeq: seq + 1, lastSeq: next.seq - 1, attempts: 1 };
  ledger.noteLetter({ ...lost, at: rooms.ambient.now(), redeliveredAt: undefined });
  rooms.onGivenUp(webhookId);
}
