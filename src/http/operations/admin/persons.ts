import { z } from 'zod';
import type { Erasure, ScrubResult } from '../../../audit/port.ts';
import { Fault } from '../../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../../domain/id.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { withTimeout } from '../../../platform/timeout.ts';
import { idSchema, link, timestampSchema } from '../../openapi/schemas.ts';
import { adminOperation } from './operation.ts';

const REALM_ID = '019c1318-a400-7000-8000-000000000001';
const USER_ID = '019c1318-a400-7000-8000-000000000004';
const AT = '2026-01-31T09:00:00.000Z';

/** The identifier of a record of this kind, in any letter case. */
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
  return new Fault('conflict', [{ field: 'data.user_id', rule: 'is nobody that anything tells of' }]);
}

const files = z
  .strictObject({
    state: z.enum(['clean', 'left', 'archived', 'pending']).meta({
      description:
        'Of the files of the database: no byte of it is left; another program left some, and `erase user` sees to it; ' +
        'archives hold it up to `position`; or it is not known yet.',
    }),
    position: z.string().nullable(),
  })
  .meta({ description: 'As it was when the user was erased.', 'x-authrealm-shown-once': true });

const shown = {
  id: idSchema,
  type: z.literal('erasure'),
  realm_id: idSchema,
  erased_at: timestampSchema,
};
const links = z.strictObject({ self: link });
const erasure = z.strictObject({ data: z.strictObject(shown), links }).meta({ id: 'erasure' });
const erased = z
  .strictObject({ data: z.strictObject({ ...shown, files }), links })
  .meta({ id: 'erasure.new' });
const PATH = `/erasures/${REALM_ID}/${USER_ID}`;
const EXAMPLE = { id: USER_ID, type: 'erasure', realm_id: REALM_ID, erased_at: AT };
const SELF = { self: `https://idp.example/admin/v1${PATH}` };

function erasureData({ realm, user, at }: Erasure) {
  return { id: user, type: 'erasure', realm_id: realm, erased_at: new Date(at).toISOString() };
}

/** What became of the files, as far as that is known in time. */
async function filesOf(scrubbed: Promise<ScrubResult | undefined>): Promise<z.output<typeof files>> {
  const known = await withTimeout(scrubbed, LIMITS.scrubWaitMsMax, () => undefined);
  return { state: known?.kind ?? 'pending', position: known?.kind === 'archived' ? known.position : null };
}

/** What a person may ask of who holds something about it. */
export const PERSON_OPERATIONS = [
  adminOperation({
    name: 'create-erasure',
    method: 'POST',
    path: '/erasures',
    summary: 'Erase a user: all that is held, and all that tells of the person, the log included. For good.',
    data: {
      schema: z.object({
        realm_id: realmId,
        user_id: identifierReadBy('get-user-authentication-info', { 'x-authrealm-ends': true }),
      }),
      example: PERSON,
    },
    success: {
      status: 201,
      description: 'Nobody can read any of it any more. Asked for again it is done again.',
      schema: erased,
      example: { data: { ...EXAMPLE, files: { state: 'clean', position: null } }, links: SELF },
      location: PATH,
    },
    faults: ['conflict', 'unknown_outcome'],
    async handle({ data, auditContext, url }, { erase }) {
      const done = await erase(personIn(data), auditContext);
      if (!done) throw unknownUser();
      const { realm, user } = done.erasure;
      const location = url(`/erasures/${realm}/${user}`);
      const [known, untold] = await Promise.all([filesOf(done.scrubbed), done.untold]);
      // Whoever hears that somebody is erased must not meet that person again behind a restore.
      if (untold !== undefined) throw new Fault('unknown_outcome', [], untold);
      const told = { ...erasureData(done.erasure), files: known };
      return { body: { data: told, links: { self: location } }, location };
    },
  }),
  adminOperation({
    name: 'get-erasure',
    method: 'GET',
    path: '/erasures/:realm_id/:user_id',
    summary: 'When a user was erased.',
    params: {
      realm_id: { description: 'The realm of the user, in any letter case.', example: REALM_ID },
      user_id: { description: 'The user, in any letter case.', example: USER_ID },
    },
    success: {
      status: 200,
      description: 'That it happened, and when.',
      schema: erasure,
      example: { data: EXAMPLE, links: SELF },
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
    name: 'tell-subject-access',
    method: 'POST',
    path: '/subject-access',
    summary: 'Everything that is held about a user, ready to be shown to that person.',
    description:
      `At most ${LIMITS.subjectAccessPiecesMax} records and entries; \`authrealm subject-access\` tells any number. ` +
      'That it was asked for is logged.',
    data: {
      schema: z.object({ realm_id: realmId, user_id: identifierReadBy('get-user-authentication-info') }),
      example: PERSON,
    },
    success: {
      status: 200,
      description: 'The records, then what the log tells. Password hashes are held, too, and told to nobody.',
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
      for await (const held of subjectAccess(person, auditContext)) {
        if (held.kind === 'record') records.push(held.record);
        else entries.push(held.entry);
        if (records.length + entries.length > LIMITS.subjectAccessPiecesMax) {
          const rule = 'has more than one answer tells: authrealm subject-access tells it all';
          throw new Fault('conflict', [{ field: 'data.user_id', rule }]);
        }
      }
      // That it was asked for is an entry of its own.
      if (records.length === 0 && entries.every(({ what }) => what === 'user.told')) throw unknownUser();
      const { realm, user } = person;
      return { body: { data: { id: user, type: 'subject_access', realm_id: realm, records, entries } } };
    },
  }),
] as const;
