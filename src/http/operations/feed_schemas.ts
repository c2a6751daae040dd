import { z } from 'zod';
import { LIMITS } from '../../domain/limits.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { feedCursor } from '../../events/feed/cursor.ts';
import type { Examples } from '../openapi/examples.ts';
import { EXTENSION, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, timestampSchema } from '../openapi/schemas.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { STREAM_TYPE } from './changes.ts';

/** The OpenAPI parameters and responses of the change feed. */

const REALM = '019c1318-a400-7000-8000-000000000001' as Parameters<typeof feedCursor>[1]['realm'];
const USER = '019c1318-a400-7000-8000-000000000004';
const AT = {
  realm: REALM,
  seq: 42,
  revision: '17a4c09be25d6f83' as Parameters<typeof feedCursor>[1]['revision'],
};
const CURSOR = feedCursor('after', AT);

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

const afterCursor = () =>
  parameter(
    cursorSchema(),
    'Return changes after this cursor. By default, from the oldest retained change.',
    CURSOR,
  );
const beforeCursor = () =>
  parameter(
    z.string().regex(/^([\w-]{38})?$/),
    'Return the changes before this cursor, instead of `after`: the newest page first, each page in order. Empty for the newest changes. Not allowed for a stream.',
    CURSOR,
  );
const ofUser = () =>
  parameter(idSchema, 'With `before`: return only changes of this user and of its links.', USER);
const lastEvent = () =>
  parameter(
    cursorSchema(),
    'For a stream: the cursor to resume from; it takes precedence over `after`.',
    CURSOR,
  );
const afterRealm = () => parameter(idSchema, 'Return realms after this ID.', REALM);
const pageLimit = () =>
  parameter(
    z.int().min(1).max(LIMITS.pageRecordsMax),
    `The maximum number of items; ${LIMITS.pageRecordsMax} by default.`,
    LIMITS.pageRecordsMax,
  );

const headSchema = () =>
  z.strictObject({
    realm_id: idSchema,
    cursor: cursorSchema(),
    time: timestampSchema,
    links: z.strictObject({ changes: link }),
  });

function pageSchema(item: z.ZodType, meta: z.ZodRawShape): z.ZodType {
  return z.strictObject({
    data: z.array(item).max(LIMITS.pageRecordsMax),
    meta: z.strictObject(meta),
    links: z.strictObject({ next: link.nullable() }),
  });
}

function headsExample(baseUrl: string): object {
  const changes = `${baseUrl}/v2/authentication-realms/${REALM}/changes?after=${CURSOR}`;
  const head = { realm_id: REALM, cursor: CURSOR, time: '2026-01-31T09:00:00.000Z', links: { changes } };
  return { data: [head], meta: { has_more: false }, links: { next: null } };
}

function eventExample(baseUrl: string): object {
  return {
    specversion: '1.0',
    id: `${AT.seq}-${AT.revision}`,
    source: `${baseUrl}/v2/authentication-realms/${REALM}`,
    type: 'user-authentication-info.created',
    subject: `user-authentication-info/${USER}`,
    time: '2026-01-31T09:00:00.000Z',
    datacontenttype: JSON_TYPE,
    sequence: '000000000000042',
    data: {
      realm_id: REALM,
      user_id: USER,
      record_id: USER,
      revision: AT.revision,
      members: [],
      client_id: '019c1318-a400-7000-8000-000000000098',
      request_id: '5f0c6d7e8a9b4c3d2e1f-1a',
    },
  };
}

function pageExample(baseUrl: string, examples: Examples): object {
  const [, , , user] = RESOURCES;
  const { data, ...rest } = eventExample(baseUrl) as { data: object };
  const record = user ? { record: examples.record(user) } : {};
  return {
    data: [{ ...rest, data: { ...data, ...record } }],
    meta: { cursor: CURSOR, has_more: false },
    links: { next: null },
  };
}

function streamExample(baseUrl: string): string {
  const event = `id: ${CURSOR}\ndata: ${JSON.stringify(eventExample(baseUrl))}\n\n`;
  return `: alive\n\n${event}event: end\ndata: {"reason":"token"}\n\n`;
}

/** The parameters of a request for the changes of a realm. */
export function changesParameters() {
  return {
    path: z.object({ realm_id: idSchema.meta({ param: { example: REALM } }) }),
    query: z.object({ after: afterCursor(), before: beforeCursor(), limit: pageLimit(), user_id: ofUser() }),
    ownHeaders: { 'Last-Event-ID': lastEvent() },
  };
}

/** The changes of a realm as a page, and as a stream. */
export function changesContent(baseUrl: string, examples: Examples) {
  const page = pageSchema(eventSchema(), { cursor: cursorSchema(), has_more: z.boolean() });
  return {
    ...jsonContent(page, pageExample(baseUrl, examples)),
    [STREAM_TYPE]: { schema: z.string(), example: streamExample(baseUrl) },
  };
}

/** The parameters of a request for the feed heads of all realms. */
export function headsQuery(): z.ZodObject {
  return z.object({ after: afterRealm(), limit: pageLimit() });
}

/** The feed heads of all realms. */
export function headsContent(baseUrl: string) {
  return jsonContent(pageSchema(headSchema(), { has_more: z.boolean() }), headsExample(baseUrl));
}
