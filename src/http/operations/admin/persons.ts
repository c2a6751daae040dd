import { z } from 'zod';
import type { Erasure } from '../../../domain/erasure.ts';
import { Fault } from '../../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../../domain/id.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { withTimeout } from '../../../platform/timeout.ts';
import { idSchema, timestampSchema } from '../../openapi/schemas.ts';
import { adminOperation, singleAnswer } from './operation.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const USER_ID = '019c1318-a400-7000-8000-000000000004';
const AT = '2026-01-31T09:00:00.000Z';

/** The ID of a record that `readBy` reads, in any letter case. */
function identifierReadBy(readBy: string, more: object = {}) {
  return z
    .string()
    .refine((raw) => parseUuid(raw) !== undefined, { error: 'must be an identifier' })
    .meta({ format: 'uuid', 'x-authrealm-reads': readBy, ...more });
}

const realmId = identifierReadBy('get-authentication-realm');
const PERSON = { realm_id: REALM_ID, user_id: USER_ID };

function personIn({ realm_id, user_id }: { readonly realm_id: string; readonly user_id: string }) {
  return { realm: parseUuid(realm_id) as Uuid, user: parseUuid(user_id) as Uuid };
}

function unknownUser(): Fault {
  return new Fault('conflict', [{ field: 'data.user_id', rule: 'no data exists about this user' }]);
}

const files = z.enum(['clean', 'archived', 'pending']).meta({
  description:
    'What is left of the data in database files: `clean`, at most copies in unused parts of pages, until `authrealm compact`; ' +
    '`archived`, files and archives of PostgreSQL; `pending`, a read delays the removal. Text of other programs is not searched.',
  'x-authrealm-shown-once': true,
});

const shown = {
  id: idSchema,
  type: z.literal('erasure'),
  realm_id: idSchema,
  erased_at: timestampSchema,
};
const PATH = `/erasures/${REALM_ID}/${USER_ID}`;
const EXAMPLE = { id: USER_ID, type: 'erasure', realm_id: REALM_ID, erased_at: AT };

function erasureData({ realm, user, at }: Erasure) {
  return { id: user, type: 'erasure', realm_id: realm, erased_at: new Date(at).toISOString() };
}

/** Erasure of a user and subject access. */
export const PERSON_OPERATIONS = [
  adminOperation({
    name: 'create-erasure',
    method: 'POST',
    path: '/erasures',
    summary: 'Permanently erase a user and all personal data about it, including in the audit log.',
    data: {
      schema: z.object({
        realm_id: realmId,
        user_id: identifierReadBy('get-user-authentication-info', { 'x-authrealm-ends': true }),
      }),
      example: PERSON,
    },
    success: {
      status: 201,
      description: 'The data is erased and unreadable. Repeating the request erases again.',
      ...singleAnswer('erasure.new', { ...shown, files }, { ...EXAMPLE, files: 'clean' }, PATH),
      location: PATH,
    },
    faults: ['conflict', 'unknown_outcome'],
    async handle({ data: input, auditContext, url }, { erase }) {
      const done = await erase(personIn(input), auditContext);
      if (!done) throw unknownUser();
      const { realm, user } = done.erasure;
      const location = url(`/erasures/${realm}/${user}`);
      const waiting = withTimeout(done.bytes, LIMITS.erasedBytesWaitMsMax, () => undefined);
      const [bytes = 'pending', reportError] = await Promise.all([waiting, done.reportError]);
      // A success must survive a restore, so the erasure has to be recorded outside of the database first.
      if (reportError !== undefined) throw new Fault('unknown_outcome', [], reportError);
      const data = { ...erasureData(done.erasure), files: bytes };
      return { body: { data, links: { self: location } }, location };
    },
  }),
  adminOperation({
    name: 'get-erasure',
    method: 'GET',
    path: '/erasures/:realm_id/:user_id',
    summary: 'Get when a user was erased.',
    params: {
      realm_id: { description: 'The realm of the user, in any letter case.', example: REALM_ID },
      user_id: { description: 'The user, in any letter case.', example: USER_ID },
    },
    success: {
      status: 200,
      description: 'The erasure and its time.',
      ...singleAnswer('erasure', shown, EXAMPLE, PATH),
    },
    faults: ['not_found'],
    async handle({ params, url }, { logStore }) {
      const realm = parseUuid(params.realm_id ?? '');
      const user = parseUuid(params.user_id ?? '');
      const found = realm && user ? await logStore.erasure({ realm, user }) : undefined;
      if (!found) throw new Fault('not_found');
      const self = url(`/erasures/${found.realm}/${found.user}`);
      return { body: { data: erasureData(found), links: { self } } };
    },
  }),
  adminOperation({
    name: 'get-subject-access',
    method: 'POST',
    path: '/subject-access',
    summary: 'Get all data held about a user, for presentation to that person.',
    description:
      `At most ${LIMITS.subjectAccessEntriesMax} records and entries; \`authrealm subject-access\` has no limit. ` +
      'Each request is an entry in the audit log.',
    data: {
      schema: z.object({ realm_id: realmId, user_id: identifierReadBy('get-user-authentication-info') }),
      example: PERSON,
    },
    success: {
      status: 200,
      description: 'The records and the audit entries. Password hashes are held as well and never returned.',
      schema: z
        .strictObject({
          data: z.strictObject({
            id: idSchema,
            type: z.literal('subject_access'),
            realm_id: idSchema,
            records: z.array(z.looseObject({ type: z.string() })),
            entries: z.array(z.looseObject({ what: z.string() })),
          }),
        })
        .meta({ id: 'subject_access' }),
      example: {
        data: {
          id: USER_ID,
          type: 'subject_access',
          realm_id: REALM_ID,
          records: [{ type: 'user_authentication_info', id: USER_ID, name: 'Jane Doe' }],
          entries: [{ what: 'user-authentication-info.created', seq: 1, at: AT }],
        },
      },
    },
    faults: ['conflict'],
    async handle({ data, auditContext }, { subjectAccess }) {
      const person = personIn(data);
      const records: object[] = [];
      const entries: { readonly what: string }[] = [];
      for await (const item of subjectAccess(person, auditContext)) {
        if (item.kind === 'record') records.push(item.record);
        else entries.push(item.entry);
        if (records.length + entries.length > LIMITS.subjectAccessEntriesMax) {
          const rule = `has more than ${LIMITS.subjectAccessEntriesMax} records and entries: use authrealm subject-access`;
          throw new Fault('conflict', [{ field: 'data.user_id', rule }]);
        }
      }
      // The request itself is an audit entry, so one entry alone does not show that the user exists.
      if (records.length === 0 && entries.every(({ what }) => what === 'user.told')) throw unknownUser();
      const { realm, user } = person;
      return { body: { data: { id: user, type: 'subject_access', realm_id: realm, records, entries } } };
    },
  }),
] as const;
