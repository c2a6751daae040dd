import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { displayedText } from '../../model/text/folding.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { exchangeCode, openSignInDeadline, verifyIdToken } from '../issuers/code_flow.ts';
import type { ConfiguredIssuer } from '../issuers/issuer_keys.ts';
import type { ConsoleClient } from '../issuers/issuers_file.ts';
import type { FetchFailure } from '../issuers/jwk_set.ts';
import { openProviderMetadata, type ProviderMetadata } from '../issuers/provider_metadata.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { GuardedFetch } from '../outbound/guarded_fetch.ts';
import type { GuardedForm } from '../outbound/guarded_post.ts';
import { openSlots } from '../outbound/slots.ts';
import { type ClaimRight, combineRights, metRights, type Rights } from '../tokens/claim_rights.ts';
import { externalActor } from '../tokens/external_tokens.ts';

/** The parameters with which the console sends a browser to a provider (OpenID Connect Core 1.0, 3.1.2.1). */
export type AuthorizationRequest = NonNullable<Awaited<ReturnType<ConsoleProvider['authorizationRequest']>>>;

/** What the browser brings back from the provider (OpenID Connect Core 1.0, 3.1.2.5). */
export interface AuthorizationResponse {
  readonly code: string;
  readonly codeVerifier: string;
  readonly nonce: string;
  /** The parameter `iss` (RFC 9207), if present. */
  readonly iss: string | undefined;
}

interface ProviderDeps {
  readonly fetchDocument: GuardedFetch;
  readonly postForm: GuardedForm;
  readonly keyring: Pick<Keyring, 'digest'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The URL of the console. */
  readonly redirectUri: string;
  /**
   * Called with the outcome at a provider when it differs from the previous one; the operator can fix it, the
   * user cannot.
   */
  readonly note: (name: string, outcome: ProviderOutcome) => void;
}

type ProviderOutcome =
  | FetchFailure
  | 'metadata_unusable'
  | 'token_endpoint_failed'
  | 'no_id_token'
  | 'id_token_refused'
  | 'answered';

export function openConsoleProviders(
  known: Iterable<ConfiguredIssuer>,
  deps: ProviderDeps,
): ReadonlyMap<string, ConsoleProvider> {
  const providers = [...known].flatMap(({ issuer, keys }) =>
    issuer.console ? [openProvider({ issuer, keys }, issuer.console, deps)] : [],
  );
  return new Map(providers.map((provider) => [provider.name, provider]));
}

export type ConsoleProvider = ReturnType<typeof openProvider>;

/** An OpenID provider with which people sign in to the console. */
function openProvider(known: ConfiguredIssuer, client: ConsoleClient, deps: ProviderDeps) {
  const { issuer } = known;
  const { metadata } = openProviderMetadata(issuer.issuer, deps.fetchDocument, deps.clock);
  let last: ProviderOutcome = 'answered';
  const slots = openSlots(LIMITS.providerCodesAtOnceMax, LIMITS.providerCodesAtOnceMax);

  function note(outcome: ProviderOutcome): void {
    if (outcome !== last) deps.note(issuer.name, outcome);
    last = outcome;
  }

  async function readMetadata(): Promise<ProviderMetadata | undefined> {
    const read = await metadata();
    if (typeof read === 'object') return read;
    note(read);
    return undefined;
  }

  async function signIn(response: AuthorizationResponse) {
    const { iss, nonce } = response;
    const leftMs = openSignInDeadline(deps.clock);
    const read = await readMetadata();
    if (!read) return 'unavailable';
    // The issuer of the response is checked before the code is sent (RFC 9207, 2.4).
    if (iss === undefined ? read.sendsIssuer : iss !== issuer.issuer) return 'refused';
    const { postForm, redirectUri } = deps;
    const request = { postForm, namedBy: issuer.issuer, msMax: leftMs() };
    const tokens = await exchangeCode({ ...client, ...response, redirectUri }, read, request);
    if (tokens === 'code_refused') return 'refused';
    if (typeof tokens === 'string') {
      note(tokens);
      return 'unavailable';
    }
    return identify(tokens.idToken, nonce, leftMs());
  }

  /** The person that an ID token is about, with the rights that its claims map to. */
  async function identify(idToken: string, nonce: string, msMax: number) {
    const times = { now: deps.clock.now(), msMax };
    const claims = await verifyIdToken(known, { clientId: client.clientId, idToken, nonce }, times);
    note(claims === 'id_token_refused' ? claims : 'answered');
    if (claims === 'id_token_refused') return 'refused';
    if (claims === 'keys_unreadable') return 'unavailable';
    const subject = String(claims.sub);
    const met = metRights(claims, issuer.rights);
    return {
      actor: externalActor(issuer, subject, deps.keyring),
      label: labelOf(claims, client) ?? subject,
      subject,
      // A rule may name a personal value.
      rules: met.map(digestOf),
      ...combineRights(met),
    };
  }

  /** The scopes and realms of a rule are not in its digest: they may change during a session. */
  function digestOf({ claim, value }: ClaimRight): string {
    return deps.keyring.digest('claim-right', JSON.stringify([issuer.issuer, claim, value]));
  }

  return {
    name: issuer.name,
    async authorizationRequest() {
      const read = await readMetadata();
      if (!read) return undefined;
      const { authorizationEndpoint } = read;
      const { clientId, scope } = client;
      const { redirectUri } = deps;
      return { authorizationEndpoint, clientId, issuer: issuer.issuer, scope, redirectUri };
    },
    /**
     * Exchanges the code and verifies the ID token. `refused`: the response is invalid. `unavailable`: the provider fails. Rejects only
     * with Fault `overloaded`.
     */
    async completeSignIn(response: AuthorizationResponse) {
      // Anybody can send codes, and each occupies a connection until the provider answers.
      const release = slots.take(undefined);
      try {
        return await signIn(response);
      } finally {
        release();
      }
    },
    /** The rights that these rules give now: those of the issuer may have changed since the sign-in. */
    rightsOf: (rules: readonly string[]): Rights =>
      combineRights(issuer.rights.filter((right) => rules.includes(digestOf(right)))),
  };
}

const LABEL = displayedText(255);

/** The first of the configured claims that is present; an unverified e-mail address is not used. */
function labelOf(claims: JsonObject, { person }: ConsoleClient): string | undefined {
  const names = person.filter((name) => name !== 'email' || claims.email_verified !== false);
  return names.map((name) => LABEL.safeParse(claims[name]).data).find((label) => label !== undefined);
}
