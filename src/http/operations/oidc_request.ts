import { type IdentityResult, type OidcIdentity, REFUSALS } from '../../access/issuers/identity_providers.ts';
import type { openOidcSignIn } from '../../app/oidc_sign_in.ts';
import { Fault } from '../../model/fault.ts';
import type { Uuid } from '../../model/id.ts';
import type { Principal } from '../../model/principal.ts';
import type { SignInMechanism } from '../../ops/metrics/outcome_counts.ts';
import type { LinkedIdentity, LinkRefusal } from '../../records/identity_linking.ts';
import type { Call } from '../pipeline/call.ts';
import type { Reply } from '../server/reply.ts';
import { logSignIn, openAttempt, type SignInDeps } from './password_request.ts';

/** The dependencies of operations that sign in through OpenID providers. */
export interface OidcDeps extends SignInDeps {
  readonly oidc: ReturnType<typeof openOidcSignIn>;
}

/** A sign-in through an OIDC profile. */
interface ProviderSignIn {
  readonly mechanism: SignInMechanism;
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  /** Rejects with Fault `overloaded`. */
  identify(): Promise<IdentityResult | 'client_secret_unusable'>;
  link(identity: OidcIdentity): Promise<LinkedIdentity | LinkRefusal>;
}

/** An end user who signed in through a provider. `amr`: how (RFC 8176), if the provider says so. */
interface SignedInIdentity extends LinkedIdentity {
  readonly amr: readonly string[] | undefined;
}

/**
 * Identifies an end user and finds or makes their link, after `readEndUserAddress`, within the budgets, with metrics and log entries. A
 * throttled request is a reply, and asks no provider. Rejects with Fault `overloaded` and `provider_unavailable`.
 */
export async function signInThroughProvider(
  call: Call,
  signIn: ProviderSignIn,
  deps: OidcDeps,
): Promise<SignedInIdentity | 'refused' | Reply> {
  const { oidc } = deps;
  const { budgets, countSignIn } = deps.signIn;
  const { mechanism, realmId, profileId } = signIn;
  const attempt = openAttempt(call, realmId, countSignIn.bind(null, mechanism), deps);
  const { clientId } = call.principal as Principal;
  const source = { kind: 'identity', realmId, profileId, clientId, address: call.endUserAddress } as const;
  const throttled = await budgets.throttledSource(source);
  if (throttled) return attempt.throttledReply(throttled);
  const identity = await attempt.run(signIn.identify());
  if (typeof identity === 'string') {
    const isRefused = REFUSALS.includes(identity);
    attempt.count(isRefused ? 'refused' : 'unavailable');
    oidc.noteFailure(realmId, profileId, identity);
    if (isRefused || identity === 'token_endpoint_failed') await budgets.takeFromSource(source);
    if (!isRefused) throw new Fault('provider_unavailable');
    return 'refused';
  }
  const linked = await attempt.run(signIn.link(identity));
  if (typeof linked === 'string') {
    attempt.count('refused');
    oidc.noteFailure(realmId, profileId, linked);
    return 'refused';
  }
  attempt.count(linked.outcome);
  await logSignIn(call, { realmId, ...linked }, deps, 'oidc');
  return { ...linked, amr: identity.amr };
}
