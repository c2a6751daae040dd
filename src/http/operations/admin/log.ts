import { z } from 'zod';
import type { ReadableEntry } from '../../../audit/reading.ts';
import { Fault } from '../../../domain/fault.ts';
import { NIL_UUID, parseUuid, type Uuid } from '../../../domain/id.ts';
import { idSchema, timestampSchema } from '../../openapi/schemas.ts';
import { type AdminDeps, adminOperation } from './operation.ts';
import { linksExample, pageBody, pageParameters, pageRangeOf, pageSchema } from './page.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const USER_ID = '019c1318-a400-7000-8000-000000000004';
const AT = '2026-01-31T09:00:00.000Z';
const TAG = '5a'.repeat(32);

const nullableText = z.string().nullable();
const nullableMembers = z.looseObject({}).nullable();
const tag = nullableText.meta({ description: 'In hexadecimal; null behind the end of the chain.' });

const entry = z
  .strictObject({
    id: z.string().meta({ description: 'Its place in this log.' }),
    type: z.literal('log_entry'),
    at: timestampSchema,
    what: z.string().meta({ description: 'The act, or the event of a change.' }),
    actor: z
      .string()
      .meta({ description: 'The client, the command line, or what the installation does by itself.' }),
    address: nullableText,
    request_id: nullableText,
    realm_id: nullableText,
    user_id: nullableText,
    object: nullableText.meta({ description: 'The record, client, key or target it was done to.' }),
    members: z.array(z.string()).nullable(),
    detail: nullableMembers.meta({
      description: 'Members before and after that say nothing about a person.',
    }),
    personal: z
      .union([z.enum(['erased', 'unreadable']), z.looseObject({})])
      .nullable()
      .meta({ description: 'Those that do; `erased` where nobody can read them any more.' }),
    tag,
  })
  .meta({ id: 'log_entry' });

const head = z
  .strictObject({
    id: idSchema.meta({ description: 'The realm; the nil UUID for the log of the installation.' }),
    type: z.literal('log_head'),
    entries: z.int().min(0).meta({ description: 'How many entries were ever chained.' }),
    seq: z.int().min(0).meta({ description: 'The place of the last one.' }),
    tag,
    begins_after: z.int().min(0).meta({ description: 'The place behind which entries are still kept.' }),
  })
  .meta({ id: 'log_head' });

const ENTRY = {
  id: '1',
  type: 'log_entry',
  at: AT,
  what: 'client.disabled',
  actor: '019c1318-a400-7000-8000-000000000097',
  address: '192.0.2.1',
  request_id: 'desk-42',
  realm_id: null,
  user_id: null,
  object: '019c1318-a400-7000-8000-000000000098',
  members: null,
  detail: { before: { is_disabled: false }, after: { is_disabled: true } },
  personal: null,
  tag: TAG,
};

const entryPageParameters = pageParameters({ pattern: /^\d{1,15}$/, example: '1' });

function page(path: string, item: object) {
  return { data: [item], meta: { page: { limit: 25 } }, links: linksExample(path) };
}

function present({ log: _, seq, ...told }: ReadableEntry) {
  return {
    id: String(seq),
    type: 'log_entry',
    at: told.at,
    what: told.what,
    actor: told.actor,
    address: told.address ?? null,
    request_id: told.request_id ?? null,
    realm_id: told.realm_id ?? null,
    user_id: told.user_id ?? null,
    object: told.object ?? null,
    members: told.members ?? null,
    detail: told.detail ?? null,
    personal: told.personal ?? null,
    tag: told.tag ?? null,
  };
}

/** The realm of a path, whose log may outlive it. Throws Fault `not_found` where there never was one. */
async function existingLog(raw: string, { logStore }: AdminDeps): Promise<Uuid> {
  const id = parseUuid(raw);
  if (id === undefined || id === NIL_UUID || !(await logStore.head(id))) throw new Fault('not_found');
  return id;
}

/** What was done, as it is kept: an entry for each act and each change, chained by tags. */
export const LOG_OPERATIONS = [
  adminOperation({
    name: 'list-log-heads',
    method: 'GET',
    path: '/log/heads',
    summary: 'How far each log goes: that of the installation, then those of the realms.',
    query: z.object(pageParameters({ pattern: /^[0-9a-f-]{36}$/, example: REALM_ID })),
    success: {
      status: 200,
      description: 'The heads, in the order of their identifiers.',
      schema: pageSchema(head, 'log_head.page'),
      example: page('/log/heads', {
        id: NIL_UUID,
        type: 'log_head',
        entries: 1,
        seq: 1,
        tag: TAG,
        begins_after: 0,
      }),
    },
    async handle({ query, url }, { logStore, pageLength }) {
      const wanted = pageRangeOf(query, pageLength);
      const heads = await logStore.heads(parseUuid(wanted.after ?? ''), wanted.limit);
      const items = heads.map(({ log, seq, chain }) => ({
        id: log,
        type: 'log_head',
        entries: chain?.end.entries ?? 0,
        seq: chain?.end.seq ?? seq,
        tag: chain ? Buffer.from(chain.end.tag).toString('hex') : null,
        begins_after: chain?.anchor.seq ?? 0,
      }));
      return { body: pageBody(items, wanted, url('/log/heads')) };
    },
  }),
  adminOperation({
    name: 'list-log',
    method: 'GET',
    path: '/log',
    summary: 'What was done to the installation, the oldest entry first.',
    query: z.object(entryPageParameters),
    success: {
      status: 200,
      description: 'The entries.',
      schema: pageSchema(entry, 'log_entry.page'),
      example: page('/log', ENTRY),
    },
    async handle({ query, url }, { logReading, pageLength }) {
      const wanted = pageRangeOf(query, pageLength);
      const entries = await logReading.entries(NIL_UUID, Number(wanted.after ?? 0), wanted.limit);
      return { body: pageBody(entries.map(present), wanted, url('/log')) };
    },
  }),
  adminOperation({
    name: 'list-realm-log',
    method: 'GET',
    path: '/realms/:realm_id/log',
    summary: 'What was written in a realm, the oldest entry first.',
    description: 'The log of a realm stays when the realm is deleted.',
    params: {
      realm_id: {
        description: 'The identifier of the realm, in any letter case.',
        example: REALM_ID,
        readBy: 'get-authentication-realm',
      },
    },
    query: z.object({
      ...entryPageParameters,
      user_id: z
        .string()
        .refine((raw) => parseUuid(raw) !== undefined, { error: 'must be the identifier of a user' })
        .optional()
        .meta({
          param: { description: 'Only what concerns this user, in any letter case.', example: USER_ID },
        }),
    }),
    success: {
      status: 200,
      description: 'The entries, what they tell of persons as far as it can still be read.',
      schema: pageSchema(entry, 'log_entry.realm_page'),
      example: page(`/realms/${REALM_ID}/log`, {
        ...ENTRY,
        what: 'user-authentication-info.created',
        realm_id: REALM_ID,
        user_id: USER_ID,
        object: USER_ID,
        members: ['name', 'email'],
        detail: null,
        personal: { after: { name: 'Jane Doe', email: 'jane@example.com' } },
      }),
    },
    faults: ['not_found'],
    async handle({ params, query, url }, deps) {
      const log = await existingLog(params.realm_id ?? '', deps);
      const wanted = pageRangeOf(query, deps.pageLength);
      const user = query.user_id === undefined ? undefined : parseUuid(query.user_id);
      const after = Number(wanted.after ?? 0);
      const entries = await (user
        ? deps.logReading.entriesOf({ realm: log, user }, 'realm', after, wanted.limit)
        : deps.logReading.entries(log, after, wanted.limit));
      const carried = user ? `&user_id=${user}` : '';
      return { body: pageBody(entries.map(present), wanted, url(`/realms/${log}/log`), carried) };
    },
  }),
] as const;
