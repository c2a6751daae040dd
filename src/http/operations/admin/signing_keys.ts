import { z } from 'zod';
import {
  keySetAt,
  MASTER_KEY_CHANGED,
  rotateSigningKey,
  SIGNING_KEY_STATES,
  signingKeyState,
  withdrawSigningKey,
} from '../../../access/keys/signing.ts';
import type { SigningKey } from '../../../access/store/access.ts';
import { Fault } from '../../../model/fault.ts';
import { parseUuid } from '../../../model/id.ts';
import { assertFound } from '../../../model/managed.ts';
import { EXAMPLE_AT } from '../../openapi/examples.ts';
import { timestampSchema } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import {
  type AdminDeps,
  type AdminRequest,
  adminOperation,
  answerForm,
  singleAnswer,
  urlAt,
} from './operation.ts';
import { listOperation, pageSlice } from './page.ts';

const KID = '019c1318-a400-7000-8000-000000000099';
const NAMED = { kid: { description: 'The ID of the key, the `kid` of its tokens.', example: KID } };

type KeyDeps = Pick<AdminDeps, 'accessStore' | 'keyring' | 'clock'>;

type ShownKey = Pick<SigningKey, 'kid' | 'signsFrom' | 'withdrawnAt' | 'createdAt'> & {
  readonly state: ReturnType<typeof signingKeyState>;
};

const KEY: ProjectedMembers<ShownKey> = {
  id: [z.string(), ({ kid }) => kid],
  type: 'signing_key',
  state: z.enum(SIGNING_KEY_STATES).meta({
    description:
      '`signs`: signs new tokens; `next`: published, will sign; `accepted`: its tokens are still accepted; `retired`: all its ' +
      'tokens have expired; `withdrawn`: its tokens are rejected.',
  }),
  signs_from: instant(({ signsFrom }) => signsFrom),
  withdrawn_at: instant(({ withdrawnAt }) => withdrawnAt, timestampSchema.nullable()),
  meta: { created_at: instant(({ createdAt }) => createdAt) },
};
const EXAMPLE_KEY: ShownKey = {
  kid: KID,
  state: 'signs',
  signsFrom: EXAMPLE_AT,
  withdrawnAt: undefined,
  createdAt: EXAMPLE_AT,
};
const pathOf = ({ kid }: ShownKey) => `/signing-keys/${kid}`;
const SHOWN = singleAnswer('signing_key', KEY, EXAMPLE_KEY, pathOf);

/** All keys with their states, which depend on each other. */
async function shownKeys({ accessStore, clock }: KeyDeps): Promise<readonly ShownKey[]> {
  const keys = await accessStore.signingKeys();
  const keySet = keySetAt(keys, clock.now());
  return keys.map((key) => ({ ...key, state: signingKeyState(key, keySet) }));
}

/** Throws Fault `not_found` for a text that cannot be a key ID. */
function kidIn({ params: { kid = '' } }: AdminRequest<unknown, unknown>): string {
  return assertFound(parseUuid(kid));
}

/** Throws Fault `not_found`. */
async function keyAt(wanted: string, deps: KeyDeps): Promise<ShownKey> {
  return assertFound((await shownKeys(deps)).find(({ kid }) => kid === wanted));
}

/** The keys that sign access tokens. Only the command line changes the master key that seals them. */
export const SIGNING_KEY_OPERATIONS = [
  listOperation({
    name: 'list-signing-keys',
    path: '/signing-keys',
    summary: 'List the keys that sign access tokens, with their state.',
    page: {
      id: 'signing_key.page',
      description: 'The keys, without their private parts.',
      item: answerForm('signing_key.item', { ...KEY, links: { self: urlAt(pathOf) } }, EXAMPLE_KEY),
    },
    read: async (range, _, deps: KeyDeps) => ({
      items: pageSlice(await shownKeys(deps), ({ kid }) => kid, range),
    }),
  }),
  adminOperation({
    name: 'create-signing-key',
    method: 'POST',
    path: '/signing-keys',
    summary: 'Create a signing key. It starts signing once every cached key set includes it.',
    success: { ...SHOWN, status: 201, description: 'The new key.' },
    faults: ['conflict', 'unknown_outcome'],
    async handle({ auditContext }, deps: KeyDeps) {
      const { kid } = await rotateSigningKey(deps.accessStore, deps.keyring, auditContext);
      return keyAt(kid, deps);
    },
  }),
  adminOperation({
    name: 'get-signing-key',
    method: 'GET',
    path: '/signing-keys/:kid',
    summary: 'Get one signing key.',
    params: NAMED,
    success: { ...SHOWN, status: 200, description: 'The key, without its private part.' },
    handle: (request, deps: KeyDeps) => keyAt(kidIn(request), deps),
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
    faults: ['unknown_outcome'],
    async handle(request, deps: KeyDeps) {
      const kid = kidIn(request);
      await withdrawSigningKey(kid, deps.accessStore, deps.keyring, request.auditContext);
      const key = await keyAt(kid, deps);
      if (key.withdrawnAt === undefined) throw new Fault('unavailable', [], MASTER_KEY_CHANGED);
      return key;
    },
  }),
] as const;
