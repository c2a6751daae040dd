import { type Act, type Asker, actOf } from '../../domain/act.ts';
import { overloaded } from '../../domain/fault.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Realms, Scopes } from '../../domain/principal.ts';
import type { AccessStore } from '../port.ts';
import type { OwnToken, Tokens } from '../tokens/token.ts';
import type { Whence } from '../tokens/token_endpoint.ts';
import { digestCode, LINK_CODE } from './console_links.ts';
import type { ConsoleProvider, Departure, Return } from './console_providers.ts';

/** What the actors of links begin with; no client and no issuer has this name. */
export const LINKED = 'console';

/** Somebody who is signed in to the console, and what that is worth. */
export interface Session {
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
export interface Sessions {
  /** The names of the providers by which one signs in. */
  readonly providers: readonly string[];
  /** What a page needs to go to one; undefined where there is none of that name. */
  depart(name: string): Promise<Departure | 'unavailable' | undefined>;
  /**
   * Begins the session of whoever comes back from a provider; `rightless`: nothing gives them a right here. Rejects with Fault
   * `overloaded`.
   */
  byProvider(
    name: string,
    back: Return,
    from: Whence,
  ): Promise<Session | 'refused' | 'unavailable' | 'rightless'>;
  /** Exchanges the one-time code of a link; undefined where it is none, was used, or it is not its minute. */
  byLink(code: string, from: Whence): Promise<Session | undefined>;
  /** Ends the session of a token; false where the token is that of a client. Rejects with Fault `overloaded`. */
  end(token: OwnToken, from: Whence): Promise<boolean>;
}

interface Means {
  readonly tokens: Pick<Tokens, 'mint'>;
  readonly store: Pick<AccessStore, 'hasConsoleLink' | 'takeConsoleLink' | 'revokeToken'>;
  readonly providers: ReadonlyMap<string, ConsoleProvider>;
  /** Logs an act. Rejects with Fault `unavailable`. */
  readonly note: (act: Act) => Promise<void>;
  /** Encrypts what an act tells about a person. */
  readonly sealPerson: (told: object) => string;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

/** Who begins a session, and with which rights. */
interface Holder {
  readonly actor: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

export function openSessions({ tokens, store, providers, note, sealPerson, clock }: Means): Sessions {
  return {
    providers: [...providers.keys()],
    async depart(name) {
      const provider = providers.get(name);
      return provider && ((await provider.depart()) ?? 'unavailable');
    },
    async byProvider(name, back, from) {
      const person = await (providers.get(name)?.arrive(back) ?? 'refused');
      if (typeof person === 'string') return person;
      const { actor, label, subject, scopes, realms } = person;
      // Whoever meets no right has no realm either.
      if (realms !== '*' && realms.size === 0) return 'rightless';
      const jti = clock.mintId();
      const begun = begunBy({ actor, scopes, realms }, jti, { from, clock });
      // Of a session that began there is an entry.
      await note({ ...begun, detail: { ...begun.detail, person: sealPerson({ name: label, subject }) } });
      const { token, expiresIn } = await mintSession({ actor, scopes, realms }, jti, tokens);
      return { token, expiresIn, scopes, realms, actor, label };
    },
    async byLink(code, from) {
      if (!LINK_CODE.test(code)) return undefined;
      const digest = digestCode(code);
      // A guess costs one read, and claims nothing.
      if (!(await store.hasConsoleLink(digest, clock.now()))) return undefined;
      const jti = clock.mintId();
      const link = await store.takeConsoleLink(digest, clock.now(), ({ label, scopes, realms }) =>
        begunBy({ actor: `${LINKED}:${label}`, scopes, realms }, jti, { from, clock }),
      );
      if (!link) return undefined;
      const { label, scopes, realms } = link;
      const actor = `${LINKED}:${label}`;
      const { token, expiresIn } = await mintSession({ actor, scopes, realms }, jti, tokens);
      return { token, expiresIn, scopes, realms, actor, label };
    },
    async end({ jti, clientId, expires, isSession }, from) {
      if (!isSession) return false;
      const asker = { ...from, actor: clientId };
      const act = actOf('session.ended', { object: jti, detail: {} }, { now: clock.now, asker });
      const isKept = await store.revokeToken({ jti, clientId, expiresAt: expires * 1_000 }, act);
      if (!isKept) throw overloaded('REVOCATIONS_FULL');
      return true;
    },
  };
}

function mintSession({ actor, scopes, realms }: Holder, jti: Uuid, tokens: Pick<Tokens, 'mint'>) {
  const holder = { clientId: actor, realms };
  return tokens.mint(holder, scopes, { jti, lifetimeSeconds: LIMITS.consoleTokenSeconds });
}

/** The entry of a session that begins now. */
function begunBy(
  { actor, scopes, realms }: Holder,
  jti: Uuid,
  { from, clock }: { readonly from: Whence; readonly clock: Pick<Clock, 'now'> },
): Act {
  const asker: Asker = { ...from, actor };
  const detail = {
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    expires_at: new Date(clock.now() + LIMITS.consoleTokenSeconds * 1_000).toISOString(),
  };
  return actOf('session.begun', { object: jti, detail }, { now: clock.now, asker });
}
