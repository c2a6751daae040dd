import { z } from 'zod';
import type { SequencedChange } from '../../domain/change.ts';
import type { Revision } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { realm, user } from '../../domain/resources.ts';
import { feedCursor } from '../../events/feed/cursor.ts';
import { eventText } from '../../events/feed/write_events.ts';
import { type Examples, exampleIdOf } from '../openapi/examples.ts';
import { EXTENSION, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, timestampSchema } from '../openapi/schemas.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { headText, STREAM_TYPE } from './changes.ts';

/** The OpenAPI parameters and responses of the change feed. */

const [REALM, USER] = [exampleIdOf(realm), exampleIdOf(user)];
/** The change of every example. */
const CHANGE: SequencedChange = {
  event: `${user.name}.created`,
  realm: REALM,
  user: USER,
  id: USER,
  seq: 42,
  revision: '17a4c09be25d6f83' as Revision,
  members: [],
  actor: '019c1318-a400-7000-8000-000000000098',
  requestId: '5f0c6d7e8a9b4c3d2e1f-1a',
  address: undefined,
  at: Date.UTC(2026, 0, 31, 9),
};
const CURSOR = feedCursor('after', CHANGE);

const cursorSchema = () =>
  z
    .string()
    .regex(/^[\w-]{38}$/)
    .meta({ description: 'An opaque position in the feed of one realm.' });

const eventSchema = () =>
  z
    .strictObject({
      specversion: z.literal('1.0'),
      id: z.string().meta({ description: 'Unique among the events of the same source.' }),
      source: link.meta({ description: 'The URL of the realm.' }),
      type: z.string().meta({
        description: 'The name of the resource, followed by `created`, `updated` or `deleted`.',
      }),
      subject: z.string().meta({
        description: 'The record, as a path relative to the source; for a realm, its ID.',
      }),
      time: timestampSchema,
      datacontenttype: z.literal(JSON_TYPE),
      sequence: z
        .string()
        .regex(/^\d{15}$/)
        .meta({
          description:
            'The position among the changes of the realm, without gaps (CloudEvents extension `sequence`).',
        }),
      data: z.strictObject({
        realm_id: idSchema,
        user_id: idSchema
          .nullable()
          .meta({ description: 'The user that the record belongs to, or the user itself.' }),
        record_id: idSchema,
        revision: z.string().meta({ description: 'The revision of the record after this write.' }),
        members: z.array(z.string()).meta({ description: 'The members that an update wrote.' }),
        client_id: z.string().meta({ description: 'The client that wrote it.' }),
        request_id: z.string().nullable(),
        record: z.looseObject({}).nullable().optional().meta({
          description:
            'The current record as GET returns it, or null if it was deleted. Absent if the token may not read this resource.',
        }),
      }),
    })
    .meta({
      id: 'Event',
      description: 'A change (CloudEvents 1.0). Only `record` contains values of the record.',
    });

function parameter(schema: z.ZodType, description: string, example: string | number) {
  return schema.optional().meta({ param: { ...EXTENSION, description, example } });
}

const pageLimit = () =>
  parameter(
    z.int().min(1).max(LIMITS.pageRecordsMax),
    `The maximum number of items; ${LIMITS.pageRecordsMax} by default.`,
    LIMITS.pageRecordsMax,
  );

function pageSchema(item: z.ZodType, meta: z.ZodRawShape): z.ZodType {
  return z.strictObject({
    data: z.array(item).max(LIMITS.pageRecordsMax),
    meta: z.strictObject(meta),
    links: z.strictObject({ next: link.nullable() }),
  });
}

/** The parameters of a request for the changes of a realm. */
export function changesParameters() {
  return {
    path: z.object({ realm_id: idSchema.meta({ param: { example: REALM } }) }),
    query: z.object({
      after: parameter(
        cursorSchema(),
        'Return changes after this cursor. By default, from the oldest retained change.',
        CURSOR,
      ),
      before: parameter(
        z.string().regex(/^([\w-]{38})?$/),
        'Return the changes before this cursor, instead of `after`: the newest page first, each page in order. Empty for the newest changes. Not allowed for a stream.',
        CURSOR,
      ),
      limit: pageLimit(),
      user_id: parameter(idSchema, 'With `before`: return only changes of this user and of its links.', USER),
    }),
    ownHeaders: {
      'Last-Event-ID': parameter(
        cursorSchema(),
        'For a stream: the cursor to resume from; it takes precedence over `after`.',
        CURSOR,
      ),
    },
  };
}

/** The changes of a realm as a page, and as a stream. */
export function changesContent(baseUrl: string, examples: Examples) {
  const page = pageSchema(eventSchema(), { cursor: cursorSchema(), has_more: z.boolean() });
  const state = JSON.stringify(examples.record(user));
  const event = eventText(CHANGE, { baseUrl, state: undefined });
  return {
    ...jsonContent(page, {
      data: [JSON.parse(eventText(CHANGE, { baseUrl, state }))],
      meta: { cursor: CURSOR, has_more: false },
      links: { next: null },
    }),
    [STREAM_TYPE]: {
      schema: z.string(),
      example: `: alive\n\nid: ${CURSOR}\ndata: ${event}\n\nevent: end\ndata: {"reason":"token"}\n\n`,
    },
  };
}

/** The parameters of a request for the feed heads of all realms. */
export function headsQuery(): z.ZodObject {
  return z.object({ after: parameter(idSchema, 'Return realms after this ID.', REALM), limit: pageLimit() });
}

/** The feed heads of all realms. */
export function headsContent(baseUrl: string) {
  const head = z.strictObject({
    realm_id: idSchema,
    cursor: cursorSchema(),
    time: timestampSchema,
    links: z.strictObject({ changes: link }),
  });
  const example = JSON.parse(headText(CHANGE, baseUrl));
  return jsonContent(pageSchema(head, { has_more: z.boolean() }), {
    data: [example],
    meta: { has_more: false },
    links: { next: null },
  });
}
