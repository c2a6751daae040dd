import { z } from 'zod';
import type { ReadableEntry } from '../../../audit/reading.ts';
import { Fault } from '../../../domain/fault.ts';
import { NIL_UUID, parseUuid, type Uuid } from '../../../domain/id.ts';
import type { LogStore } from '../../../store/audit/log_reading.ts';
import { idSchema, timestampSchema } from '../../openapi/schemas.ts';
import { type ProjectedMembers, projectionSchema, projector } from '../projection.ts';
import type { AdminDeps } from './operation.ts';
import { listOperation } from './page.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const USER_ID = '019c1318-a400-7000-8000-000000000004';
const AT = '2026-01-31T09:00:00.000Z';
const TAG = '5a'.repeat(32);

const nullableText = z.string().nullable();
const nullableMembers = z.looseObject({}).nullable();
const tag = nullableText.meta({
  description: 'The chain tag in hexadecimal; null for an entry that is not chained yet.',
});

/** Its parts have names: a generator of Java makes no class for a union with an anonymous one. */
const personalMembers = z
  .union([
    z.enum(['erased', 'unreadable']).meta({ id: 'PersonalMembersGone' }),
    z
      .strictObject({ before: z.looseObject({}).optional(), after: z.looseObject({}).optional() })
      .meta({ id: 'PersonalMembersKept' }),
  ])
  .meta({
    id: 'PersonalMembers',
    description: 'Personal members before and after; `erased` after an erasure.',
  });

const orNull = (name: keyof ReadableEntry) => (entry: ReadableEntry) => entry[name] ?? null;

const ENTRY_MEMBERS: ProjectedMembers<ReadableEntry> = {
  id: [z.string().meta({ description: 'The position in this log.' }), ({ seq }) => String(seq)],
  type: 'log_entry',
  at: timestampSchema,
  what: z.string().meta({ description: 'The action, or the event of a change.' }),
  actor: z.string().meta({ description: 'The client, the command line, or a task of the service.' }),
  address: nullableText,
  request_id: [nullableText, orNull('request_id')],
  realm_id: [nullableText, orNull('realm_id')],
  user_id: [nullableText, orNull('user_id')],
  object: nullableText.meta({ description: 'The record, client, key or target of the action.' }),
  members: z.array(z.string()).nullable(),
  detail: nullableMembers.meta({ description: 'Non-personal members before and after.' }),
  personal: personalMembers.nullable(),
  tag,
};
const entry = projectionSchema(ENTRY_MEMBERS).meta({ id: 'log_entry' });
const present = projector(ENTRY_MEMBERS);

const HEAD_MEMBERS: ProjectedMembers<Awaited<ReturnType<LogStore['heads']>>[number]> = {
  id: [
    idSchema.meta({ description: 'The realm, or the nil UUID for the log of the installation.' }),
    ({ log }) => log,
  ],
  type: 'log_head',
  entries: [
    z.int().min(0).meta({ description: 'The number of entries chained so far.' }),
    ({ chain }) => chain?.end.entries ?? 0,
  ],
  seq: [
    z.int().min(0).meta({ description: 'The position of the last entry.' }),
    ({ chain, seq }) => chain?.end.seq ?? seq,
  ],
  tag: [tag, ({ chain }) => (chain ? Buffer.from(chain.end.tag).toString('hex') : null)],
  begins_after: [
    z.int().min(0).meta({ description: 'Entries after this position are retained.' }),
    ({ chain }) => chain?.anchor.seq ?? 0,
  ],
};

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

const ENTRY_ID = /^\d{1,15}$/;

/** The realm of a path; its log remains after it is deleted. Throws Fault `not_found` if it never existed. */
async function existingLog(raw: string, { logStore }: AdminDeps): Promise<Uuid> {
  const id = parseUuid(raw);
  if (id === undefined || id === NIL_UUID || !(await logStore.head(id))) throw new Fault('not_found');
  return id;
}

/** The audit log: an entry for each action and each change, chained by tags. */
export const LOG_OPERATIONS = [
  listOperation({
    name: 'list-log-heads',
    path: '/log/heads',
    summary: 'List the head of each audit log: that of the installation, then those of the realms.',
    idPattern: /^[0-9a-f-]{36}$/,
    page: {
      id: 'log_head.page',
      description: 'The heads, ordered by ID.',
      item: projectionSchema(HEAD_MEMBERS).meta({ id: 'log_head' }),
      example: { id: NIL_UUID, type: 'log_head', entries: 1, seq: 1, tag: TAG, begins_after: 0 },
    },
    async read({ after = '', limit }, _, { logStore }) {
      const heads = await logStore.heads(parseUuid(after), limit);
      return { items: heads.map(projector(HEAD_MEMBERS)) };
    },
  }),
  listOperation({
    name: 'list-log',
    path: '/log',
    summary: 'List the audit log of the installation, oldest entry first.',
    idPattern: ENTRY_ID,
    page: { id: 'log_entry.page', description: 'The entries.', item: entry, example: ENTRY },
    async read({ after = 0, limit }, _, { logReading }) {
      const entries = await logReading.entries(NIL_UUID, Number(after), limit);
      return { items: entries.map(present) };
    },
  }),
  listOperation({
    name: 'list-realm-log',
    path: '/realms/:realm_id/log',
    summary: 'List the audit log of a realm, oldest entry first.',
    description: 'The log remains after the realm is deleted.',
    params: {
      realm_id: {
        description: 'The ID of the realm, in any letter case.',
        example: REALM_ID,
        readBy: 'get-authentication-realm',
      },
    },
    idPattern: ENTRY_ID,
    query: {
      user_id: z
        .string()
        .refine((raw) => parseUuid(raw) !== undefined, { error: 'must be the identifier of a user' })
        .optional()
        .meta({
          param: {
            description: 'Only entries about this user; the ID in any letter case.',
            example: USER_ID,
          },
        }),
    },
    page: {
      id: 'log_entry.realm_page',
      description: 'The entries, with the personal values that can still be read.',
      item: entry,
      example: {
        ...ENTRY,
        what: 'user-authentication-info.created',
        realm_id: REALM_ID,
        user_id: USER_ID,
        object: USER_ID,
        members: ['name', 'email'],
        detail: null,
        personal: { after: { name: 'Jane Doe', email: 'jane@example.com' } },
      },
    },
    faults: ['not_found'],
    async read({ after = 0, limit }, { params, query }, deps) {
      const log = await existingLog(params.realm_id ?? '', deps);
      const user = parseUuid(query.user_id ?? '');
      const entries = await (user
        ? deps.logReading.entriesOf({ realm: log, user }, 'realm', Number(after), limit)
        : deps.logReading.entries(log, Number(after), limit));
      const carried = user ? `&user_id=${user}` : '';
      return { items: entries.map(present), path: `/realms/${log}/log`, carried };
    },
  }),
] as const;
