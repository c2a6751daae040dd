import { z } from 'zod';
import type { WriteEvents } from '../../deliver/feed/read_feed.ts';
import type { ReadableEntry } from '../../log/reading.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import { eventResource } from '../../model/log/event.ts';
import { ancestry, type Key, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Store } from '../../model/store.ts';
import { idSchema, link, personalMembers } from '../openapi/schemas.ts';
import { type LinkContext, presenterOf } from '../pipeline/present.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { instant, type ProjectedMembers, projector } from './projection.ts';

/** A change with the state of its record and the values of its log entry, if the event contains them. */
interface ChangeWithState extends SequencedChange, Pick<ReadableEntry, 'detail' | 'personal'> {
  readonly baseUrl: string;
  readonly record?: unknown;
}

/** Digits of the extension attribute `sequence`, which is padded so that it sorts as text. */
const SEQUENCE_DIGITS = 15;

/** The members of an event. */
export const eventMembers = (): ProjectedMembers<ChangeWithState> => ({
  specversion: '1.0',
  id: [
    z.string().meta({ description: 'Unique among the events of the same source.' }),
    ({ seq, revision }) => `${seq}-${revision}`,
  ],
  source: [
    link.meta({ description: 'The URL of the realm.' }),
    ({ baseUrl, realm }) => `${baseUrl}/v2/authentication-realms/${realm}`,
  ],
  type: [
    z.string().meta({
      description: 'The name of the resource, followed by `created`, `updated` or `deleted`.',
    }),
    ({ event }) => event,
  ],
  subject: [
    z.string().meta({ description: 'The record, as a path relative to the source; for a realm, its ID.' }),
    subjectOf,
  ],
  time: instant(({ at }) => at),
  datacontenttype: JSON_TYPE,
  sequence: [
    z
      .string()
      .regex(/^\d{15}$/)
      .meta({
        description:
          'The position among the changes of the realm, without gaps (CloudEvents extension `sequence`).',
      }),
    ({ seq }) => String(seq).padStart(SEQUENCE_DIGITS, '0'),
  ],
  data: {
    realm_id: [idSchema, ({ realm }) => realm],
    user_id: [
      idSchema.nullable().meta({ description: 'The user that the record belongs to, or the user itself.' }),
      ({ user }) => user ?? null,
    ],
    record_id: [idSchema, ({ id }) => id],
    revision: z.string().meta({ description: 'The revision of the record after this write.' }),
    members: z.array(z.string()).meta({ description: 'The members that an update wrote.' }),
    client_id: [z.string().meta({ description: 'The client that wrote it.' }), ({ actor }) => actor],
    request_id: z.string().nullable(),
    detail: [z.looseObject({}).optional(), ({ detail }) => detail],
    personal: [personalMembers.optional(), ({ personal }) => personal],
    record: [
      z.looseObject({}).nullable().optional().meta({
        description:
          'The current record as GET returns it, or null if it was deleted. Absent if the token may not read this resource.',
      }),
      ({ record }) => record,
    ],
  },
});

interface EventDeps extends LinkContext {
  readonly store: Pick<Store, 'get'>;
}

export function openEventWriter({ store, baseUrl, installation }: EventDeps): WriteEvents {
  const presenters = new Map(
    RESOURCES.map((resource) => [resource, presenterOf(resource, { baseUrl, installation })]),
  );
  const describeEvent = projector(eventMembers());

  return (changes, mayRead) =>
    Promise.all(
      changes.map(async (change) => {
        const event = JSON.stringify(describeEvent({ ...change, baseUrl }));
        const resource = eventResource(change.event);
        const key = resource && recordKey(resource, change);
        if (!resource || !key || !mayRead(resource)) return event;
        const record = await store.get(resource, key);
        const state = record ? presenters.get(resource)?.(record, key) : 'null';
        // The record is the last member of the last member.
        return `${event.slice(0, -'}}'.length)},"record":${state}}}`;
      }),
    );
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
  const path = below.map(({ collection }, depth) => `${collection}/${key[depth + 1]}`);
  return path.join('/') || change.id;
}
