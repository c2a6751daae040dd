import { z } from 'zod';
import { LIMITS } from '../../domain/limits.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { cursorAt } from '../../events/feed/cursor.ts';
import type { Examples } from '../openapi/examples.ts';
import { EXTENSION, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, timestampSchema } from '../openapi/schemas.ts';
import { JSON_TYPE } from '../server/reply.ts';
import { STREAM_TYPE } from './changes.ts';

/** Parameters and answers of the change feed, in the OpenAPI document. */

const REALM = '019c1318-a400-7000-8000-000000000001' as Parameters<typeof cursorAt>[1]['realm'];
const USER = '019c1318-a400-7000-8000-000000000004';
const AT = {
  realm: REALM,
  seq: 42,
  revision: '17a4c09be25d6f83' as Parameters<typeof cursorAt>[1]['revision'],
};
const CURSOR = cursorAt('behind', AT);

const cursorSchema = () =>
  z
    .string()
    .regex(/^[\w-]{38}$/)
    .meta({ description: 'A place in the feed of one realm. What is in it may change: keep it as it is.' });

const eventSchema = () =>
  z
    .strictObject({
      specversion: z.literal('1.0'),
      id: z.string().meta({ description: 'Unlike that of any other event of the same source.' }),
      source: link.meta({ description: 'The address of the realm.' }),
      type: z.string().meta({
        description: 'What happened: the name of the resource and `created`, `updated` or `deleted`.',
      }),
      subject: z.string().meta({
        description: 'The record: what stands behind the source in its address; a realm by its ID.',
      }),
      time: timestampSchema,
      datacontenttype: z.literal(JSON_TYPE),
      sequence: z
        .string()
        .regex(/^\d{15}$/)
        .meta({
          description:
            'The place in the order of the realm, without gaps (CloudEvents extension `sequence`).',
        }),
      data: z.strictObject({
        realm_id: idSchema,
        user_id: idSchema
          .nullable()
          .meta({ description: 'The user above the record, or the record itself where it is one.' }),
        record_id: idSchema,
        revision: z.string().meta({ description: 'Of the record, as this write left it.' }),
        members: z.array(z.string()).meta({ description: 'Which members an update wrote.' }),
        client_id: z.string().meta({ description: 'Who wrote it.' }),
        request_id: z.string().nullable(),
        record: z.looseObject({}).nullable().optional().meta({
          description:
            'The record as a GET answers it now, null where it is gone. Absent where the token may not read its kind.',
        }),
      }),
    })
    .meta({
      id: 'Event',
      description: 'A change (CloudEvents 1.0). It holds no value of its record but in `record`.',
    });

function parameter(schema: z.ZodType, description: string, example: string | number) {
  return schema.optional().meta({ param: { ...EXTENSION, description, example } });
}

const afterCursor = () =>
  parameter(
    cursorSchema(),
    'The cursor behind which to go on. Without one, the oldest changes that are kept.',
    CURSOR,
  );
const beforeCursor = () =>
  parameter(
    z.union([z.literal(''), cursorSchema()]),
    'The cursor before which to tell, instead of `after`: the newest first page by page, each page in the order of the realm. Empty for the newest. Not of a stream.',
    CURSOR,
  );
const ofUser = () =>
  parameter(
    idSchema,
    'With `before`: the user whose changes, and those of their links, alone are told.',
    USER,
  );
const lastEvent = () =>
  parameter(cursorSchema(), 'Of a stream: the cursor to go on from, before `after`.', CURSOR);
const afterRealm = () => parameter(idSchema, 'The realm behind which to go on.', REALM);
const pageLimit = () =>
  parameter(
    z.int().min(1).max(LIMITS.pageRecordsMax),
    `How many, ${LIMITS.pageRecordsMax} unless given.`,
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

/** What a request for the changes of a realm may name. */
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

/** What a request for the newest changes of all realms may name. */
export function headsQuery(): z.ZodObject {
  return z.object({ after: afterRealm(), limit: pageLimit() });
}

/** The newest changes of all realms. */
export function headsContent(baseUrl: string) {
  return jsonContent(pageSchema(headSchema(), { has_more: z.boolean() }), headsExample(baseUrl));
}
