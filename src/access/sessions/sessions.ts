import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { type AuditContext, type AuditEntry, createAuditEntry } from '../../model/log/audit_entry.ts';
import { intersectRealms, intersectScopes, type Realms } from '../../model/principal.ts';
import type { AuthStore } from '../store/access.ts';
import type { StoredSession } from '../store/sign_ins.ts';
import { loggedRights } from '../tokens/claim_rights.ts';
import type { RequestOrigin } from '../tokens/introspection.ts';
import type { IssuedToken, Tokens } from '../tokens/token.ts';
import { digestLinkCode, LINK_CODE } from './console_links.ts';
import type { AuthorizationResponse, ConsoleProvider } from './console_providers.ts';

/** The prefix of actors who signed in by a console link; no client or issuer has this name. */
export const CONSOLE_LINK_ISSUER = 'console';
export const LINK_ACTOR_PREFIX = `${CONSOLE_LINK_ISSUER}:`;

export type SessionGrant = NonNullable<Awaited<ReturnType<ConsoleSessions['renew']>>>;

export type ConsoleSession = NonNullable<Awaited<ReturnType<ConsoleSessions['signInByLink']>>>;

interface SessionDeps {
  readonly tokens: Pick<Tokens, 'mint'>;
  readonly store: AuthStore;
  readonly providers: ReadonlyMap<string, ConsoleProvider>;
  /** Encrypts the personal values of an audit entry. */
  readonly sealPerson: (values: object) => string;
  /** Called with the table and key of a row that was not written by the service. */
  readonly onForgedRow: (table: string, id: string) => void;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

export type ConsoleSessions = ReturnType<typeof openConsoleSessions>;

/** Starts, renews and ends sessions of the console. */
export function openConsoleSessions(deps: SessionDeps) {
  const { tokens, store, providers, sealPerson, onForgedRow, clock } = deps;
  function begin(
    rights: Pick<StoredSession, 'actor' | 'scopes' | 'realms' | 'rules' | 'person'>,
  ): StoredSession {
    const now = clock.now();
    const msMax = rights.scopes.has('admin') ? LIMITS.consoleAdminSessionMsMax : LIMITS.consoleSessionMsMax;
    return { ...rights, sessionId: clock.mintId(), begunAt: now, renewedAt: now, endsAt: now + msMax };
  }

  /** The token of a session and the rights of both, with the seconds until each ends, however often the session is renewed. */
  async function grantToken(session: StoredSession) {
    const { sessionId, actor, scopes, realms, endsAt } = session;
    const sessionExpiresIn = Math.floor((endsAt - clock.now()) / 1_000);
    const lifetimeSeconds = Math.min(LIMITS.consoleTokenSeconds, sessionExpiresIn);
    const holder = { clientId: actor, realms };
    const { token, expiresIn } = await tokens.mint(holder, scopes, { sessionId, lifetimeSeconds });
    return { token, expiresIn, sessionExpiresIn, scopes, realms, actor };
  }

  return {
    providers: [...providers.keys()],
    /** The authorization request for a provider; undefined if there is none of that name. */
    async authorizationRequest(name: string) {
      const provider = providers.get(name);
      return provider && ((await provider.authorizationRequest()) ?? 'unavailable');
    },
    /**
     * Starts a session from a provider's response; `rightless`: the claims map to no right. Rejects with Fault
     * `overloaded`.
     */
    async signInByProvider(name: string, response: AuthorizationResponse, from: RequestOrigin) {
      const person = await (providers.get(name)?.completeSignIn(response) ?? 'refused');
      if (typeof person === 'string') return person;
      const { label, subject, ...rights } = person;
      // A person whose claims map to no right has no realm.
      if (hasNoRealms(rights.realms)) return 'rightless' as const;
      const session = begin({ ...rights, person: sealPerson({ name: label, subject }) });
      await store.insertConsoleSession({ session, auditEntry: sessionBegunEntry(session, from, clock) });
      return { ...(await grantToken(session)), label };
    },
    /** Starts a session with the one-time code of a link; undefined if the code is unknown, used or expired. */
    async signInByLink(code: string, from: RequestOrigin) {
      if (!LINK_CODE.test(code)) return undefined;
      const digest = digestLinkCode(code);
      // A guessed code costs one read and no write.
      const state = await store.consoleLinkState(digest, clock.now());
      if (state === 'forged') onForgedRow('console_link', digest);
      if (state !== 'valid') return undefined;
      const session = await store.redeemConsoleLink(digest, clock.now(), ({ label, scopes, realms }) => {
        const actor = LINK_ACTOR_PREFIX + label;
        const begun = begin({ actor, scopes, realms, rules: [], person: undefined });
        return { session: begun, auditEntry: sessionBegunEntry(begun, from, clock) };
      });
      const label = session?.actor.slice(LINK_ACTOR_PREFIX.length) ?? '';
      return session && { ...(await grantToken(session)), label };
    },
    /** A new token of a session, with the rights of now; undefined if the session has ended, or has no rights any more. */
    async renew(sessionId: string) {
      const now = clock.now();
      const session = await store.renewConsoleSession(sessionId, now, (stored) =>
        renewedSession(stored, providers, now),
      );
      if (session === 'forged') {
        onForgedRow('console_session', sessionId);
        return undefined;
      }
      return session && grantToken(session);
    },
    /** Ends the session of a token; false for the token of a client. */
    async signOut({ sessionId, clientId: actor }: IssuedToken, from: RequestOrigin): Promise<boolean> {
      if (sessionId === undefined) return false;
      await endSession(store, { sessionId, actor }, { now: clock.now, caller: { ...from, actor } });
      return true;
    },
  };
}

/** Ends a session: its tokens are rejected within a second on every process. */
export async function endSession(
  store: Pick<AuthStore, 'endConsoleSession'>,
  { sessionId, actor }: { readonly sessionId: string; readonly actor: string },
  auditContext: Pick<AuditContext, 'now' | 'caller'>,
): Promise<void> {
  const auditEntry = createAuditEntry('session.ended', { object: sessionId, detail: {} }, auditContext);
  const expiresAt = auditContext.now() + LIMITS.consoleTokenSeconds * 1_000;
  await store.endConsoleSession({ jti: sessionId, clientId: actor, expiresAt }, auditEntry);
}

/** The session with the rights that it still has; undefined without any. */
function renewedSession(
  session: StoredSession,
  providers: SessionDeps['providers'],
  now: number,
): StoredSession | undefined {
  const at = { ...session, renewedAt: now };
  if (session.actor.startsWith(LINK_ACTOR_PREFIX)) return at;
  const [issuer = ''] = session.actor.split(':', 1);
  const current = providers.get(issuer)?.rightsOf(session.rules);
  if (!current) return undefined;
  const scopes = intersectScopes(session.scopes, current.scopes);
  const realms = intersectRealms(session.realms, current.realms);
  return scopes.size === 0 || hasNoRealms(realms) ? undefined : { ...at, scopes, realms };
}

function hasNoRealms(realms: Realms): boolean {
  return realms !== '*' && realms.size === 0;
}

function sessionBegunEntry(
  { sessionId, actor, endsAt, person, ...rights }: StoredSession,
  from: RequestOrigin,
  { now }: Pick<Clock, 'now'>,
): AuditEntry {
  const detail = { ...loggedRights(rights), expires_at: new Date(endsAt).toISOString(), person };
  return createAuditEntry(
    'session.begun',
    { object: sessionId, detail },
    { now, caller: { ...from, actor } },
  );
}
