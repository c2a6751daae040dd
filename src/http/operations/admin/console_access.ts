import { z } from 'zod';
import { createConsoleLink, LINK_LABEL } from '../../../access/sessions/console_links.ts';
import { endSession } from '../../../access/sessions/sessions.ts';
import type { StoredLink } from '../../../access/store/sign_ins.ts';
import { Fault, Refusal } from '../../../model/fault.ts';
import type { Uuid } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import { createAuditEntry } from '../../../model/log/audit_entry.ts';
import { assertFound } from '../../../model/managed.ts';
import { SCOPES } from '../../../model/principal.ts';
import { EXAMPLE_AT } from '../../openapi/examples.ts';
import { idSchema, link } from '../../openapi/schemas.ts';
import { instant, type ProjectedMembers } from '../projection.ts';
import { type AdminDeps, adminOperation, answerForm, singleAnswer, urlAt } from './operation.ts';
import { listOperation, pageSlice } from './page.ts';
import { absentRealmErrors, REALMS_INPUT, REALMS_OUTPUT, readRealms, showRealms } from './realms.ts';

type Session = Omit<Awaited<ReturnType<AdminDeps['consoleSessions']>>[number], 'rules' | 'person'>;

/** The digest of a code. */
const LINK_ID = /^[\w-]{43}$/;
/** A link, and the session that it begins. */
const EXAMPLE = {
  digest: 'UD12v9GkJyOZ5ldUizoz-be6k8MTW0y5asG4pexEgn0',
  url: 'https://idp.example/console#code=k3Yb0Q6nqv8l1uW9sDZbXA',
  sessionId: '019c1318-a400-7000-8000-000000000094' as Uuid,
  actor: 'console:anna',
  label: 'anna',
  scopes: new Set(['users:read']),
  realms: '*',
  createdAt: EXAMPLE_AT,
  expiresAt: EXAMPLE_AT + LIMITS.consoleInvitationMsMax,
  begunAt: EXAMPLE_AT,
  renewedAt: EXAMPLE_AT,
  endsAt: EXAMPLE_AT + LIMITS.consoleSessionMsMax,
} as const;

const scopeList = z.array(z.enum(SCOPES as [string, ...string[]]));
const RIGHTS: ProjectedMembers<Pick<StoredLink, 'label' | 'scopes' | 'realms'>> = {
  name: [z.string().meta({ description: 'The name of the person.' }), ({ label }) => label],
  scopes: [scopeList, ({ scopes }) => [...scopes]],
  realms: [REALMS_OUTPUT, ({ realms }) => showRealms(realms)],
};
const LINK: ProjectedMembers<StoredLink> = {
  id: [z.string().meta({ description: 'The digest of its code.' }), ({ digest }) => digest],
  type: 'console_link',
  ...RIGHTS,
  expires_at: instant(({ expiresAt }) => expiresAt),
  meta: { created_at: instant(({ createdAt }) => createdAt) },
};
const pathOf = ({ digest }: StoredLink) => `/console-links/${digest}`;
const SESSION: ProjectedMembers<Session> = {
  id: [idSchema, ({ sessionId }) => sessionId],
  type: 'console_session',
  ...RIGHTS,
  actor: z.string().meta({ description: 'The name of the user in the audit log.' }),
  begun_at: instant(({ begunAt }) => begunAt),
  renewed_at: instant(({ renewedAt }) => renewedAt),
  ends_at: instant(({ endsAt }) => endsAt),
};
const url = link.meta({ description: 'Returned only here.', 'x-authrealm-shown-once': true });
const SHOWN = singleAnswer('console_link', LINK, EXAMPLE, pathOf);
const ISSUED = singleAnswer('console_link.issued', { ...LINK, url }, EXAMPLE, pathOf);
const invitation = z.object({ name: LINK_LABEL, scopes: scopeList.min(1), realms: REALMS_INPUT });
const ending = z.object({ session: z.string().regex(/^(\*|[0-9a-f-]{36})$/, 'must be * or an ID') });

const ONE_LINK = {
  path: '/console-links/:link_id',
  params: { link_id: { description: 'The ID of the link.', example: EXAMPLE.digest } },
} as const;

/** The link of a path. Throws Fault `not_found`. */
async function linkAt(id = '', { accessStore, clock }: AdminDeps): Promise<StoredLink> {
  return assertFound((await accessStore.consoleLinks(clock.now())).find(({ digest }) => digest === id));
}

/** For rights that no token can carry. */
function throwAsFault(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  throw new Fault('conflict', [{ field: 'data.realms', rule: error.message }], error);
}

/** Links to the console, and its sessions. The command line creates links, and lists and ends sessions. */
export const CONSOLE_ACCESS_OPERATIONS = [
  listOperation({
    name: 'list-console-links',
    path: '/console-links',
    summary: 'List the links to the console that can be used now, ordered by ID.',
    idPattern: LINK_ID,
    page: {
      id: 'console_link.page',
      description: 'The links, without their codes.',
      item: answerForm('console_link.item', { ...LINK, links: { self: urlAt(pathOf) } }, EXAMPLE),
    },
    read: async (range, _, { accessStore, clock }) => ({
      items: pageSlice(await accessStore.consoleLinks(clock.now()), ({ digest }) => digest, range),
    }),
  }),
  adminOperation({
    name: 'create-console-link',
    method: 'POST',
    path: '/console-links',
    summary: 'Invite a person to the console: the link signs in once, within 24 hours.',
    data: { schema: invitation, example: { name: 'anna', scopes: ['users:read'], realms: '*' } },
    success: { ...ISSUED, status: 201, description: 'The link.' },
    faults: ['conflict', 'unknown_outcome'],
    async handle({ data: { name: label, scopes, realms }, auditContext }, { accessStore, baseUrl, store }) {
      const absent = await absentRealmErrors('realms', realms, { store });
      if (absent.length > 0) throw new Fault('conflict', absent);
      const granted = { label, scopes: new Set(scopes), realms: readRealms(realms) };
      const lifetime = LIMITS.consoleInvitationMsMax;
      const made = await createConsoleLink(accessStore, granted, auditContext, lifetime).catch(throwAsFault);
      return { ...made, url: `${baseUrl}/console#code=${made.code}` };
    },
  }),
  adminOperation({
    ...ONE_LINK,
    name: 'get-console-link',
    method: 'GET',
    summary: 'Get one link to the console.',
    success: { ...SHOWN, status: 200, description: 'The link, without its code.' },
    handle: ({ params }, deps: AdminDeps) => linkAt(params.link_id, deps),
  }),
  adminOperation({
    ...ONE_LINK,
    name: 'withdraw-console-link',
    method: 'DELETE',
    summary: 'Withdraw a link to the console: its code is rejected from now on.',
    success: { status: 204, description: 'Withdrawn.' },
    faults: ['unknown_outcome'],
    async handle({ params, auditContext }, deps: AdminDeps) {
      const { digest, label: object } = await linkAt(params.link_id, deps);
      const auditEntry = createAuditEntry('console-link.withdrawn', { object, detail: {} }, auditContext);
      assertFound((await deps.accessStore.deleteConsoleLink(digest, auditEntry)) || undefined);
      return undefined;
    },
  }),
  listOperation({
    name: 'list-console-sessions',
    path: '/console-sessions',
    summary: 'List the sessions of the console that have not ended, oldest first.',
    page: {
      id: 'console_session.page',
      description: 'The sessions.',
      item: answerForm('console_session.item', SESSION, EXAMPLE),
    },
    read: async (range, _, { consoleSessions, clock }) => ({
      items: pageSlice(await consoleSessions(clock.now()), ({ sessionId }) => sessionId, range),
    }),
  }),
  adminOperation({
    name: 'end-console-sessions',
    method: 'POST',
    path: '/console-sessions/end',
    summary: 'End a session of the console, or with `*` all. Their tokens are rejected within a second.',
    data: { schema: ending, example: { session: '*' } },
    success: { status: 204, description: 'Ended.' },
    faults: ['not_found', 'unknown_outcome'],
    async handle({ data: { session: wanted }, auditContext }, { accessStore, clock }) {
      const sessions = await accessStore.consoleSessions(clock.now());
      const ended = wanted === '*' ? sessions : sessions.filter(({ sessionId }) => sessionId === wanted);
      if (ended.length === 0 && wanted !== '*') throw new Fault('not_found');
      for (const session of ended) await endSession(accessStore, session, auditContext);
      return undefined;
    },
  }),
] as const;
