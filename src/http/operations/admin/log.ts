import { z } from 'zod';
import type { ReadableEntry } from '../../../log/reading.ts';
import type { LogHead } from '../../../log/store/reading.ts';
import { Fault } from '../../../model/fault.ts';
import { NIL_UUID, parseUuid } from '../../../model/id.ts';
import { assertFound } from '../../../model/managed.ts';
import { realm, user } from '../../../model/resources.ts';
import { identifier } from '../../../model/rule.ts';
import { EXAMPLE_AT, exampleIdOf } from '../../openapi/examples.ts';
import { idSchema, personalMembers, timestampSchema } from '../../openapi/schemas.ts';
import { isoTimestamp } from '../../pipeline/present.ts';
import type { ProjectedMembers } from '../projection.ts';
import { answerForm } from './operation.ts';
import { listOperation } from './page.ts';

const REALM_ID = exampleIdOf(realm);
const USER_ID = exampleIdOf(user);
const TAG = '5a'.repeat(32);

const nullableText = z.string().nullable();
const nullableMembers = z.looseObject({}).nullable();
const tag = nullableText.meta({
  description: 'The chain tag in hexadecimal; null for an entry that is not chained yet.',
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
const HEAD_MEMBERS: ProjectedMembers<LogHead> = {
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

const LINK = { seq: 0, tag: Buffer.from(TAG, 'hex'), entries: 0 };
const EXAMPLE_HEAD: LogHead = {
  log: NIL_UUID,
  seq: 1,
  chain: { end: { ...LINK, seq: 1, entries: 1 }, anchor: { ...LINK, mac: LINK.tag } },
};
const HEAD = answerForm('log_head', HEAD_MEMBERS, EXAMPLE_HEAD);

const EXAMPLE_ENTRY: ReadableEntry = {
  log: NIL_UUID,
  seq: 1,
  at: isoTimestamp(EXAMPLE_AT),
  what: 'client.disabled',
  actor: '019c1318-a400-7000-8000-000000000097',
  address: '192.0.2.1',
  request_id: 'desk-42',
  object: '019c1318-a400-7000-8000-000000000098',
  detail: { before: { is_disabled: false }, after: { is_disabled: true } },
  tag: TAG,
};
const ENTRY = answerForm('log_entry', ENTRY_MEMBERS, EXAMPLE_ENTRY);

const ENTRY_ID = /^\d{1,15}$/;

/** The audit log: an entry for each action and each change, chained by tags. */
export const LOG_OPERATIONS = [
  listOperation({
    name: 'list-log-heads',
    path: '/log/heads',
    summary: 'List the head of each audit log: that of the installation, then those of the realms.',
    page: { id: 'log_head.page', description: 'The heads, ordered by ID.', item: HEAD },
    read: async ({ after = '', limit }, _, { logStore }) => ({
      items: await logStore.heads(parseUuid(after), limit),
    }),
  }),
  listOperation({
    name: 'list-log',
    path: '/log',
    summary: 'List the audit log of the installation, oldest entry first.',
    idPattern: ENTRY_ID,
    page: { id: 'log_entry.page', description: 'The entries.', item: ENTRY },
    read: async ({ after = 0, limit }, _, { logReading }) => ({
      items: await logReading.entries(NIL_UUID, Number(after), limit),
    }),
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
      user_id: identifier('a user')
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
      item: ENTRY,
    },
    async read({ after = 0, limit }, { params, query: { user_id: user } }, deps) {
      const log = assertFound(parseUuid(params.realm_id ?? ''));
      // The log of a deleted realm remains.
      if (log === NIL_UUID || !(await deps.logStore.head(log))) throw new Fault('not_found');
      const items = await (user
        ? deps.logReading.entriesOf({ realm: log, user }, 'realm', Number(after), limit)
        : deps.logReading.entries(log, Number(after), limit));
      return { items, carried: user ? `&user_id=${user}` : '' };
    },
  }),
] as const;
