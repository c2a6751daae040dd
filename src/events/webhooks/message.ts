import { createHash } from 'node:crypto';
import type { SequencedChange } from '../../domain/change.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { MayRead, WriteEvents } from '../feed/write_events.ts';
import type { Webhook } from './port.ts';

/** What a receiver is sent at once: events of one realm, in its order. */
export interface WebhookMessage {
  readonly id: string;
  readonly type: string;
  readonly body: Uint8Array;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** Events that may be sent together, and the place up to which the receiver is told with them. */
export interface DeliveryBatch {
  /** None where the receiver is to be told nothing of all this. */
  readonly changes: readonly SequencedChange[];
  readonly upTo: number;
}

const ONE = 'application/cloudevents+json';
const SEVERAL = 'application/cloudevents-batch+json';

/** Divides changes into what a receiver is sent at once: those that it is to be told, as many as it takes. */
export function* deliveryBatches(
  changes: readonly SequencedChange[],
  webhook: Pick<Webhook, 'events' | 'skippedClient' | 'eventsMax'>,
): Generator<DeliveryBatch> {
  let wanted: SequencedChange[] = [];
  for (const change of changes) {
    if (!isSelected(change, webhook)) continue;
    wanted.push(change);
    if (wanted.length < webhook.eventsMax) continue;
    yield { changes: wanted, upTo: change.seq };
    wanted = [];
  }
  const last = changes.at(-1);
  if (last) yield { changes: wanted, upTo: last.seq };
}

/** Whoever got something about a user hears that it was erased, whatever else it hears. */
function isSelected(
  { event, actor }: SequencedChange,
  { events, skippedClient }: Pick<Webhook, 'events' | 'skippedClient'>,
): boolean {
  if (event.endsWith('.erased')) return true;
  return actor !== skippedClient && (events === '*' || events.includes(event));
}

const always: MayRead = () => true;
const never: MayRead = () => false;

/**
 * Writes a message of as many of these changes as fit; at least one. A message of the same changes has the same identifier
 * each time, by which a receiver knows it again.
 */
export async function writeMessage(
  changes: readonly [SequencedChange, ...SequencedChange[]],
  webhook: Pick<Webhook, 'webhookId' | 'eventsMax' | 'withData'>,
  writeEvents: WriteEvents,
): Promise<WebhookMessage> {
  const events = await writeEvents(changes, webhook.withData ? always : never);
  const count = countThatFit(events);
  const sent = changes.slice(0, count);
  const [first] = changes;
  const last = sent.at(-1) ?? first;
  const isOne = webhook.eventsMax === 1;
  const text = isOne ? events[0] : `[${events.slice(0, count).join(',')}]`;
  const identity = [webhook.webhookId, first.realm, ...sent.map(({ seq, revision }) => `${seq}-${revision}`)];
  return {
    id: `msg_${createHash('sha256').update(identity.join(' ')).digest('base64url').slice(0, 32)}`,
    type: isOne ? ONE : SEVERAL,
    body: Buffer.from(text ?? ''),
    firstSeq: first.seq,
    lastSeq: last.seq,
  };
}

function countThatFit(events: readonly string[]): number {
  let bytes = 0;
  const tooMany = events.findIndex((event, place) => {
    bytes += Buffer.byteLength(event) + 1;
    return place > 0 && bytes > LIMITS.webhookBodyBytesMax;
  });
  return tooMany < 0 ? events.length : tooMany;
}
