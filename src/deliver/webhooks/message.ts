import { createHash } from 'node:crypto';
import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import type { WriteEvents } from '../feed/read_feed.ts';
import type { Webhook } from './webhook.ts';

/** One message to a target: events of one realm, in its order. */
export type WebhookMessage = Awaited<ReturnType<typeof writeMessage>>;

/** Changes that may be sent in one message, and the sequence number up to which they cover the feed. */
export interface DeliveryBatch {
  /** Empty if the target does not subscribe to any of them. */
  readonly changes: readonly SequencedChange[];
  readonly upTo: number;
}

const SINGLE_TYPE = 'application/cloudevents+json';
const BATCH_TYPE = 'application/cloudevents-batch+json';

/** Divides changes into messages: the changes that the target subscribes to, up to `eventsMax` in each. */
export function* deliveryBatches(
  changes: readonly SequencedChange[],
  webhook: Pick<Webhook, 'events' | 'skippedClient' | 'eventsMax'>,
): Generator<DeliveryBatch> {
  let selected: SequencedChange[] = [];
  for (const change of changes) {
    const { event, actor } = change;
    const isChosen = webhook.events === '*' || webhook.events.includes(event);
    // Every target receives erasures, because it may hold data about the user.
    if (!event.endsWith('.erased') && (actor === webhook.skippedClient || !isChosen)) continue;
    selected.push(change);
    if (selected.length < webhook.eventsMax) continue;
    yield { changes: selected, upTo: change.seq };
    selected = [];
  }
  const last = changes.at(-1);
  if (last) yield { changes: selected, upTo: last.seq };
}

/**
 * Writes a message of as many of these changes as fit, at least one. A message of the same changes always has the same ID,
 * by which receivers recognise a repetition.
 */
export async function writeMessage(
  changes: readonly [SequencedChange, ...SequencedChange[]],
  webhook: Pick<Webhook, 'webhookId' | 'eventsMax' | 'withData'>,
  writeEvents: WriteEvents,
) {
  const events = await writeEvents(changes, () => webhook.withData);
  const count = countThatFit(events);
  const sent = changes.slice(0, count);
  const [first] = changes;
  const last = sent.at(-1) ?? first;
  const isSingle = webhook.eventsMax === 1;
  const text = isSingle ? events[0] : `[${events.slice(0, count).join(',')}]`;
  const identity = [webhook.webhookId, first.realm, ...sent.map(({ seq, revision }) => `${seq}-${revision}`)];
  return {
    id: `msg_${createHash('sha256').update(identity.join(' ')).digest('base64url').slice(0, 32)}`,
    type: isSingle ? SINGLE_TYPE : BATCH_TYPE,
    body: text ?? '',
    firstSeq: first.seq,
    lastSeq: last.seq,
  };
}

/** A message with a single event that is no change, by which an administrator tests a target. */
export function testMessage(
  { eventsMax }: Pick<Webhook, 'eventsMax'>,
  source: string,
  { now, mintId }: Pick<Clock, 'now' | 'mintId'>,
): WebhookMessage {
  const id = mintId();
  const time = new Date(now()).toISOString();
  const content = { datacontenttype: 'application/json', data: {} };
  const event = { specversion: '1.0', id, source, type: 'webhook.test', time, ...content };
  return {
    id: `msg_${id}`,
    type: eventsMax === 1 ? SINGLE_TYPE : BATCH_TYPE,
    body: JSON.stringify(eventsMax === 1 ? event : [event]),
    firstSeq: 0,
    lastSeq: 0,
  };
}

function countThatFit(events: readonly string[]): number {
  let bytes = 0;
  const firstBeyond = events.findIndex((event, index) => {
    bytes += Buffer.byteLength(event) + 1;
    return index > 0 && bytes > LIMITS.webhookBodyBytesMax;
  });
  return firstBeyond < 0 ? events.length : firstBeyond;
}
