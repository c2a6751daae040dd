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

/** What the actors of links begin with; no client and no issuer has this name. */
export const CONSOLE_LINK_ISSUER = 'console';

/** Somebody who is signed in to the console, and what that is worth. */
export interface ConsoleSession {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** What every entry of what is done calls them. */
  readonly actor: string;
  /** What they are called in the console. */
  readonly label: string;
}

/** Begins and ends sessions of the console. */
export interface ConsoleSessions {
  /** The names of the providers by which one signs in. */
  readonly providers: readonly string[];
  /** What a page needs to go to one; undefined where there is none of that name. */
  authorizationRequest(name: string): Promise<AuthorizationRequest | 'unavailable' | undefined>;
  /**
   * Begins the session of whoever comes back from a provider; `rightless`: nothing gives them a right here. Rejects with Fault
   * `overloaded`.
   */
  signInByProvider(
    name: string,
    response: AuthorizationResponse,
    from: RequestOrigin,
  ): Promise<ConsoleSession | 'refused' | 'unavailable' | 'rightless'>;
  /** Exchanges the one-time code of a link; undefined where it is none, was used, or it is not its minute. */
  signInByLink(code: string, from: RequestOrigin): Promise<ConsoleSession | undefined>;
  /** Ends the session of a token; false where the token is that of a client. Rejects with Fault `overloaded`. */
  signOut(token: IssuedToken, from: RequestOrigin): Promise<boolean>;
}

interface SessionDeps {
  readonly tokens: Pick<Tokens, 'mint'>;
  readonly store: Pick<AuthStore, 'hasConsoleLink' | 'redeemConsoleLink' | 'revokeToken'>;
  readonly providers: ReadonlyMap<string, ConsoleProvider>;
  /** Logs an act. Rejects with Fault `unavailable`. */
  readonly note: (auditEntry: AuditEntry) => Promise<void>;
  /** Encrypts what an act tells about a person. */
  readonly sealPerson: (values: object) => string;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

/** Who begins a session, and with which rights. */
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
      // Whoever meets no right has no realm either.
      if (realms !== '*' && realms.size === 0) return 'rightless';
      const jti = clock.mintId();
      const auditEntry = sessionBegunEntry({ actor, scopes, realms }, jti, { from, clock });
      // Of a session that began there is an entry.
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
      // A guess costs one read, and claims nothing.
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

/** The entry of a session that begins now. */
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
