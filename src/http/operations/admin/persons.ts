import { z } from 'zod';
import type { Person } from '../../../log/keys.ts';
import { Fault } from '../../../model/fault.ts';
import { parseUuid } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import type { Erasure } from '../../../model/log/erasure.ts';
import { assertFound } from '../../../model/managed.ts';
import { realm, user } from '../../../model/resources.ts';
import { identifier } from '../../../model/rule.ts';
import { withTimeout } from '../../../model/timeout.ts';
import { EXAMPLE_AT, exampleIdOf } from '../../openapi/examples.ts';
import { idSchema } from '../../openapi/schemas.ts';
import { isoTimestamp } from '../../pipeline/present.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import { adminOperation, answerForm, singleAnswer } from './operation.ts';

const REALM = exampleIdOf(realm);
const USER = exampleIdOf(user);

const realmId = identifier('a realm').meta({ format: 'uuid', 'x-authrealm-reads': `get-${realm.name}` });
const userId = identifier('a user').meta({ format: 'uuid', 'x-authrealm-reads': `get-${user.name}` });
const PERSON = { realm_id: REALM, user_id: USER };

function unknownUser(): Fault {
  return new Fault('conflict', [{ field: 'data.user_id', rule: 'no data exists about this user' }]);
}

const files = z.enum(['overwritten', 'archived', 'pending']).meta({
  description:
    'What is left of the data in database files: `overwritten`, at most copies in unused parts of pages, until `authrealm ' +
    'compact`; `archived`, files and archives of PostgreSQL; `pending`, a read delays the removal. Text of other programs is not searched.',
  'x-authrealm-shown-once': true,
});

const ERASURE: ProjectedMembers<Erasure> = {
  id: [idSchema, ({ user }) => user],
  type: 'erasure',
  realm_id: [idSchema, ({ realm }) => realm],
  erased_at: instant(({ at }) => at),
};
const EXAMPLE = { realm: REALM, user: USER, at: EXAMPLE_AT };
const pathOf = ({ realm, user }: Erasure) => `/erasures/${realm}/${user}`;
const STORED = singleAnswer('erasure', ERASURE, EXAMPLE, pathOf);
const NEW = singleAnswer<Erasure & { readonly files: string }>(
  'erasure.new',
  { ...ERASURE, files },
  { ...EXAMPLE, files: 'overwritten' },
  pathOf,
);

interface HeldData extends Person {
  readonly records: readonly object[];
  readonly entries: readonly object[];
}
const SUBJECT_ACCESS = answerForm<HeldData>(
  'subject_access',
  {
    data: {
      id: [idSchema, ({ user }) => user],
      type: 'subject_access',
      realm_id: [idSchema, ({ realm }) => realm],
      records: z.array(z.looseObject({ type: z.string() })),
      entries: z.array(z.looseObject({ what: z.string() })),
    },
  },
  {
    ...EXAMPLE,
    records: [{ type: 'user_authentication_info', id: USER, name: 'Jane Doe' }],
    entries: [{ what: 'user-authentication-info.created', seq: 1, at: isoTimestamp(EXAMPLE_AT) }],
  },
);

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
        user_id: userId.meta({ ...userId.meta(), 'x-authrealm-ends': true }),
      }),
      example: PERSON,
    },
    success: {
      status: 201,
      description: 'The data is erased and unreadable. Repeating the request erases again.',
      ...NEW,
    },
    faults: ['conflict', 'unknown_outcome'],
    async handle({ data: { realm_id, user_id }, auditContext }, { erase }) {
      const done = await erase({ realm: realm_id, user: user_id }, auditContext);
      if (!done) throw unknownUser();
      const waiting = withTimeout(done.bytes, LIMITS.erasedBytesWaitMsMax, () => undefined);
      const [files = 'pending', reportError] = await Promise.all([waiting, done.reportError]);
      // A success must survive a restore, so the erasure has to be recorded outside of the database first.
      if (reportError !== undefined) throw new Fault('unknown_outcome', [], reportError);
      return { ...done.erasure, files };
    },
  }),
  adminOperation({
    name: 'get-erasure',
    method: 'GET',
    path: '/erasures/:realm_id/:user_id',
    summary: 'Get when a user was erased.',
    params: {
      realm_id: { description: 'The realm of the user, in any letter case.', example: REALM },
      user_id: { description: 'The user, in any letter case.', example: USER },
    },
    success: { ...STORED, status: 200, description: 'The erasure and its time.' },
    async handle(request, { logStore }) {
      const realm = assertFound(parseUuid(request.params.realm_id ?? ''));
      const user = assertFound(parseUuid(request.params.user_id ?? ''));
      return assertFound(await logStore.erasure({ realm, user }));
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
      schema: z.object({ realm_id: realmId, user_id: userId }),
      example: PERSON,
    },
    success: {
      status: 200,
      description: 'The records and the audit entries. Password hashes are held as well and never returned.',
      ...SUBJECT_ACCESS,
    },
    faults: ['conflict'],
    async handle(request, { subjectAccess }) {
      const { realm_id, user_id } = request.data;
      const person = { realm: realm_id, user: user_id };
      const records: object[] = [];
      const entries: { readonly what: string }[] = [];
      for await (const item of subjectAccess(person, request.auditContext)) {
        if (item.kind === 'record') records.push(item.record);
        else entries.push(item.entry);
        if (records.length + entries.length > LIMITS.subjectAccessEntriesMax) {
          const rule = `has more than ${LIMITS.subjectAccessEntriesMax} records and entries: use authrealm subject-access`;
          throw new Fault('conflict', [{ field: 'data.user_id', rule }]);
        }
      }
      // The request itself is an audit entry, so one entry alone does not show that the user exists.
      if (records.length === 0 && entries.every(({ what }) => what === 'user.told')) throw unknownUser();
      return { ...person, records, entries };
    },
  }),
] as const;
