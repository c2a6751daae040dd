import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import { eventResource } from '../../domain/event.ts';
import type { AnyRecord, Key, Resource } from '../../domain/resource.ts';
import { ancestry } from '../../domain/resource.ts';

/** Dependencies of the event writer. */
export interface EventDeps {
  readonly store: Pick<Store, 'get'>;
  readonly baseUrl: string;
  /** The body of a GET of the record. */
  readonly present: (resource: Resource, record: AnyRecord, key: Key) => string;
}

/** Whether events about this resource contain the state of their record. */
export type MayRead = (resource: Resource) => boolean;

/**
 * Writes changes as events (CloudEvents 1.0, JSON). A change holds no value of its record: if `mayRead` permits it, the
 * current state is added, or null for a deleted record.
 */
export type WriteEvents = (
  changes: readonly SequencedChange[],
  mayRead: MayRead,
) => Promise<readonly string[]>;

/** Digits of the extension attribute `sequence`, which is padded so that it sorts as text. */
const SEQUENCE_DIGITS = 15;

export function openEventWriter({ store, baseUrl, present }: EventDeps): WriteEvents {
  async function stateOf(resource: Resource, key: Key): Promise<string> {
    const record = await store.get(resource, key);
    return record ? present(resource, record, key) : 'null';
  }

  return async (changes, mayRead) => {
    const states = new Map<string, Promise<string>>();
    const stateOnce = (resource: Resource, key: Key): Promise<string> => {
      const name = `${resource.name} ${key.join(' ')}`;
      const state = states.get(name) ?? stateOf(resource, key);
      states.set(name, state);
      return state;
    };
    return Promise.all(
      changes.map(async (change) => {
        const resource = eventResource(change.event);
        const key = resource && recordKey(resource, change);
        const state = resource && key && mayRead(resource) ? await stateOnce(resource, key) : undefined;
        return eventText(change, { baseUrl, state });
      }),
    );
  };
}

interface EventContext {
  readonly baseUrl: string;
  /** The state of the record as JSON. */
  readonly state: string | undefined;
}

/** One event. */
export function eventText(change: SequencedChange, { baseUrl, state }: EventContext): string {
  const { realm, seq, revision, event } = change;
  const head = JSON.stringify({
    specversion: '1.0',
    id: `${seq}-${revision}`,
    source: `${baseUrl}/v2/authentication-realms/${realm}`,
    type: event,
    subject: subjectOf(change),
    time: new Date(change.at).toISOString(),
    datacontenttype: 'application/json',
    sequence: String(seq).padStart(SEQUENCE_DIGITS, '0'),
  });
  const data = JSON.stringify({
    realm_id: realm,
    user_id: change.user ?? null,
    record_id: change.id,
    revision,
    members: change.members,
    client_id: change.actor,
    request_id: change.requestId ?? null,
  });
  const dataWithRecord = state === undefined ? data : `${data.slice(0, -1)},"record":${state}}`;
  return `${head.slice(0, -1)},"data":${dataWithRecord}}`;
}

/** The key of the record of a change. */
function recordKey(resource: Resource, { realm, user, id }: SequencedChange): Key | undefined {
  const depth = ancestry(resource).length;
  if (depth === 1) return [realm];
  if (depth === 2) return [realm, id];
  return user && [realm, user, id];
}

/** The path of the record below its realm: it follows the source in the record's URL. */
function subjectOf(change: SequencedChange): string {
  const resource = eventResource(change.event);
  const key = resource && recordKey(resource, change);
  if (!resource || !key) return change.id;
  const [, ...below] = ancestry(resource);
  return below.length === 0
    ? change.id
    : below.map(({ collection }, depth) => `${collection}/${key[depth + 1]}`).join('/');
}
