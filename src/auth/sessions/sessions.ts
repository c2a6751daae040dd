import { type AuditEntry, type Caller, createAuditEntry } from '../../domain/audit_entry.ts';
import { overloaded } from '../../domain/fault.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Realms, Scopes } from '../../domain/principal.ts';
import type { AuthStore } from '../port.ts';
import type { RequestOrigin } from '../tokens/introspection.ts';
import type { IssuedToken, Tokens } from '../tokens/token.ts';
import { digestLinkCode, LINK_CODE } from './console_links.ts';
import type { AuthorizationRequest, AuthorizationResponse, ConsoleProvider } from './console_providers.ts';

/** The prefix of actors who signed in by a console link; no client or issuer has this name. */
export const CONSOLE_LINK_ISSUER = 'console';

/** A session of the console and its rights. */
export interface ConsoleSession {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** The actor in audit entries. */
  readonly actor: string;
  /** The name shown in the console. */
  readonly label: string;
}

/** Starts and ends sessions of the console. */
export interface ConsoleSessions {
  /** The names of the configured sign-in providers. */
  readonly providers: readonly string[];
  /** The authorization request for a provider; undefined if there is none of that name. */
  authorizationRequest(name: string): Promise<AuthorizationRequest | 'unavailable' | undefined>;
  /**
   * Starts a session from a provider's response; `rightless`: the claims map to no right. Rejects with Fault
   * `overloaded`.
   */
  signInByProvider(
    name: string,
    response: AuthorizationResponse,
    from: RequestOrigin,
  ): Promise<ConsoleSession | 'refused' | 'unavailable' | 'rightless'>;
  /** Starts a session with the one-time code of a link; undefined if the code is unknown, used or expired. */
  signInByLink(code: string, from: RequestOrigin): Promise<ConsoleSession | undefined>;
  /** Ends the session of a token; false for the token of a client. Rejects with Fault `overloaded`. */
  signOut(token: IssuedToken, from: RequestOrigin): Promise<boolean>;
}

interface SessionDeps {
  readonly tokens: Pick<Tokens, 'mint'>;
  readonly store: Pick<AuthStore, 'hasConsoleLink' | 'redeemConsoleLink' | 'revokeToken'>;
  readonly providers: ReadonlyMap<string, ConsoleProvider>;
  /** Writes an audit entry. Rejects with Fault `unavailable`. */
  readonly note: (auditEntry: AuditEntry) => Promise<void>;
  /** Encrypts the personal values of an audit entry. */
  readonly sealPerson: (values: object) => string;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

/** The actor and rights of a session. */
interface SessionRights {
  readonly actor: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

export function openConsoleSessions({
  tokens,
  store,
  providers,
  note,
  sealPerson,
  clock,
}: SessionDeps): ConsoleSessions {
  return {
    providers: [...providers.keys()],
    async authorizationRequest(name) {
      const provider = providers.get(name);
      return provider && ((await provider.authorizationRequest()) ?? 'unavailable');
    },
    async signInByProvider(name, response, from) {
      const person = await (providers.get(name)?.completeSignIn(response) ?? 'refused');
      if (typeof person === 'string') return person;
      const { actor, label, subject, scopes, realms } = person;
      // A person whose claims map to no right has no realm.
      if (realms !== '*' && realms.size === 0) return 'rightless';
      const jti = clock.mintId();
      const auditEntry = sessionBegunEntry({ actor, scopes, realms }, jti, { from, clock });
      // The audit entry is written before the session starts.
      await note({
        ...auditEntry,
        detail: { ...auditEntry.detail, person: sealPerson({ name: label, subject }) },
      });
      const { token, expiresIn } = await mintSession({ actor, scopes, realms }, jti, tokens);
      return { token, expiresIn, scopes, realms, actor, label };
    },
    async signInByLink(code, from) {
      if (!LINK_CODE.test(code)) return undefined;
      const digest = digestLinkCode(code);
      // A guessed code costs one read and no write.
      if (!(await store.hasConsoleLink(digest, clock.now()))) return undefined;
      const jti = clock.mintId();
      const link = await store.redeemConsoleLink(digest, clock.now(), ({ label, scopes, realms }) =>
        sessionBegunEntry({ actor: `${CONSOLE_LINK_ISSUER}:${label}`, scopes, realms }, jti, { from, clock }),
      );
      if (!link) return undefined;
      const { label, scopes, realms } = link;
      const actor = `${CONSOLE_LINK_ISSUER}:${label}`;
      const { token, expiresIn } = await mintSession({ actor, scopes, realms }, jti, tokens);
      return { token, expiresIn, scopes, realms, actor, label };
    },
    async signOut({ jti, clientId, expires, isSession }, from) {
      if (!isSession) return false;
      const caller = { ...from, actor: clientId };
      const auditEntry = createAuditEntry(
        'session.ended',
        { object: jti, detail: {} },
        { now: clock.now, caller },
      );
      const isKept = await store.revokeToken({ jti, clientId, expiresAt: expires * 1_000 }, auditEntry);
      if (!isKept) throw overloaded('REVOCATION_LIMIT');
      return true;
    },
  };
}

function mintSession({ actor, scopes, realms }: SessionRights, jti: Uuid, tokens: Pick<Tokens, 'mint'>) {
  const holder = { clientId: actor, realms };
  return tokens.mint(holder, scopes, { jti, lifetimeSeconds: LIMITS.consoleTokenSeconds });
}

/** The audit entry of a session that starts now. */
function sessionBegunEntry(
  { actor, scopes, realms }: SessionRights,
  jti: Uuid,
  { from, clock }: { readonly from: RequestOrigin; readonly clock: Pick<Clock, 'now'> },
): AuditEntry {
  const caller: Caller = { ...from, actor };
  const detail = {
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    expires_at: new Date(clock.now() + LIMITS.consoleTokenSeconds * 1_000).toISOString(),
  };
  return createAuditEntry('session.begun', { object: jti, detail }, { now: clock.now, caller });
}
