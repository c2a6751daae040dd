import { z } from 'zod';
import {
  keySetAt,
  rotateSigningKey,
  SIGNING_KEY_LIMIT_HINT,
  SIGNING_KEY_STATES,
  SigningKeyRefusal,
  signingKeyState,
  withdrawSigningKey,
} from '../../../auth/keys/signing.ts';
import { Fault } from '../../../domain/fault.ts';
import { parseUuid } from '../../../domain/id.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { SigningKey } from '../../../store/auth/access.ts';
import { link, timestampSchema } from '../../openapi/schemas.ts';
import {
  type AdminAnswer,
  type AdminDeps,
  type AdminRequest,
  adminOperation,
  singleAnswer,
} from './operation.ts';
import { listOperation } from './page.ts';

const KID = '019c1318-a400-7000-8000-000000000099';
const NAMED = { kid: { description: 'The ID of the key, the `kid` of its tokens.', example: KID } };

const shown = {
  id: z.string(),
  type: z.literal('signing_key'),
  state: z.enum(SIGNING_KEY_STATES).meta({
    description:
      '`signs`: signs new tokens; `next`: published, will sign; `accepted`: its tokens are still accepted; `retired`: all its ' +
      'tokens have expired; `withdrawn`: its tokens are rejected.',
  }),
  signs_from: timestampSchema,
  withdrawn_at: timestampSchema.nullable(),
  meta: z.strictObject({ created_at: timestampSchema }),
};
const EXAMPLE = {
  id: KID,
  type: 'signing_key',
  state: 'signs',
  signs_from: '2026-01-31T09:00:00.000Z',
  withdrawn_at: null,
  meta: { created_at: '2026-01-31T09:00:00.000Z' },
};
const SHOWN = singleAnswer('signing_key', shown, EXAMPLE, `/signing-keys/${KID}`);

/** Describes keys with their state among those in use. */
function describerOf(inUse: readonly SigningKey[], now: number) {
  const keySet = keySetAt(inUse, now);
  return (key: SigningKey) => ({
    id: key.kid,
    type: 'signing_key',
    state: signingKeyState(key, keySet),
    signs_from: new Date(key.signsFrom).toISOString(),
    withdrawn_at: key.withdrawnAt === undefined ? null : new Date(key.withdrawnAt).toISOString(),
    meta: { created_at: new Date(key.createdAt).toISOString() },
  });
}

/** Throws Fault `not_found` for a text that cannot be a key ID. */
function kidIn({ params: { kid = '' } }: AdminRequest<unknown, unknown>): string {
  const id = parseUuid(kid);
  if (id === undefined) throw new Fault('not_found');
  return id;
}

/** A key, and all keys in use. Throws Fault `not_found`. */
async function keyAt(kid: string, { accessStore }: AdminDeps) {
  const {
    keys: [key],
    inUse,
  } = await accessStore.signingKey(kid);
  if (!key) throw new Fault('not_found');
  return { key, inUse };
}

function present(
  { key, inUse }: { readonly key: SigningKey; readonly inUse: readonly SigningKey[] },
  { url }: AdminRequest<unknown, unknown>,
  { clock }: AdminDeps,
): AdminAnswer & { readonly self: string } {
  const self = url(`/signing-keys/${key.kid}`);
  return { body: { data: describerOf(inUse, clock.now())(key), links: { self } }, self };
}

/** The master key is being replaced, so it must not seal anything. */
const MASTER_KEY_CHANGED = new Error('the master key was changed');

const TOO_MANY = {
  field: 'signing_keys',
  rule: `at most ${LIMITS.signingKeysMax} are in use: ${SIGNING_KEY_LIMIT_HINT}`,
};

async function rotateKey(
  { auditContext }: AdminRequest<unknown, unknown>,
  { accessStore, keyring }: AdminDeps,
) {
  try {
    return await rotateSigningKey(accessStore, keyring, auditContext);
  } catch (error) {
    if (!(error instanceof SigningKeyRefusal)) throw error;
    if (error.reason === 'too many') throw new Fault('conflict', [TOO_MANY]);
    throw new Fault('unavailable', [], MASTER_KEY_CHANGED);
  }
}

/** The keys that sign access tokens. Only the command line changes the master key that seals them. */
export const SIGNING_KEY_OPERATIONS = [
  listOperation({
    name: 'list-signing-keys',
    path: '/signing-keys',
    summary: 'List the keys that sign access tokens, with their state.',
    idPattern: /^[0-9a-f-]{36}$/,
    page: {
      id: 'signing_key.page',
      description: 'The keys, without their private parts.',
      item: z
        .strictObject({ ...shown, links: z.strictObject({ self: link }) })
        .meta({ id: 'signing_key.item' }),
      example: { ...EXAMPLE, links: SHOWN.example.links },
    },
    async read({ after = '', limit }, { url }, deps) {
      const { keys, inUse } = await deps.accessStore.signingKeysAfter(after, limit);
      const describe = describerOf(inUse, deps.clock.now());
      const items = keys.map((key) => ({
        ...describe(key),
        links: { self: url(`/signing-keys/${key.kid}`) },
      }));
      return { items };
    },
  }),
  adminOperation({
    name: 'create-signing-key',
    method: 'POST',
    path: '/signing-keys',
    summary: 'Create a signing key. It starts signing once every cached key set includes it.',
    success: {
      ...SHOWN,
      status: 201,
      description: 'The new key.',
      location: `/signing-keys/${KID}`,
    },
    faults: ['conflict', 'unknown_outcome'],
    async handle(request, deps) {
      const { kid } = await rotateKey(request, deps);
      const { body, self } = present(await keyAt(kid, deps), request, deps);
      return { body, location: self };
    },
  }),
  adminOperation({
    name: 'get-signing-key',
    method: 'GET',
    path: '/signing-keys/:kid',
    summary: 'Get one signing key.',
    params: NAMED,
    success: { ...SHOWN, status: 200, description: 'The key, without its private part.' },
    faults: ['not_found'],
    handle: async (request, deps) => present(await keyAt(kidIn(request), deps), request, deps),
  }),
  adminOperation({
    name: 'withdraw-signing-key',
    method: 'POST',
    path: '/signing-keys/:kid/withdraw',
    summary:
      'Withdraw a signing key. Its tokens are rejected within a second; the current signing key is replaced.',
    description:
      'Withdrawing the current signing key also invalidates the token of this request. A withdrawn key cannot be restored.',
    params: NAMED,
    success: { ...SHOWN, status: 200, description: 'The withdrawn key.' },
    faults: ['not_found', 'unknown_outcome'],
    async handle(request, deps) {
      const kid = kidIn(request);
      await withdrawSigningKey(kid, deps.accessStore, deps.keyring, request.auditContext);
      const found = await keyAt(kid, deps);
      if (found.key.withdrawnAt === undefined) throw new Fault('unavailable', [], MASTER_KEY_CHANGED);
      return present(found, request, deps);
    },
  }),
] as const;
