import type { openSignIn } from '../../app/sign_in.ts';
import { Fault } from '../../model/fault.ts';
import type { Clock, Uuid } from '../../model/id.ts';
import { isInAny, parseNodeAddress } from '../../model/ip_address.ts';
import { createAuditEntry } from '../../model/log/audit_entry.ts';
import type { Principal } from '../../model/principal.ts';
import type { PasswordMechanism } from '../../ops/metrics/outcome_counts.ts';
import type { ThrottledSignIn } from '../../sign_in/budgets.ts';
import type { PasswordCheckOutcome, PasswordCheckRequest } from '../../sign_in/password_check.ts';
import type { Call } from '../pipeline/call.ts';
import type { RecordDeps } from '../pipeline/pipeline.ts';
import { faultReply, type Reply } from '../server/reply.ts';

/** The dependencies of operations that sign in. */
export interface SignInDeps extends RecordDeps {
  readonly clock: Clock;
  readonly signIn: ReturnType<ReturnType<typeof openSignIn>['signIn']>;
}

/** A client that may sign users in holds this scope, which no short form includes. */
export const SIGN_IN_SCOPE = 'sign-in';
/** With it, a sign-in may create users and links. No short form includes it. */
export const SIGN_UP_SCOPE = 'sign-up';

/** Names the address of the end user. */
export const END_USER_ADDRESS = 'Authrealm-End-User-Address';
/** Names a device that has signed in before, in requests and answers. */
export const DEVICE = 'Authrealm-Device';

/**
 * Reads the address of the end user. By the ID of a client alone it is that of the connection, from servers of its storefront unknown;
 * otherwise that in the header, with `--end-user-address none` unknown. Throws Fault `invalid_query`.
 */
export function readEndUserAddress(call: Call): void {
  const { implicit, endUserAddress: rule } = call.principal as Principal;
  if (!implicit && rule === 'none') return;
  const address = implicit
    ? call.address()
    : parseNodeAddress(call.request.headers.get(END_USER_ADDRESS) ?? '');
  // A connection that is closed already has no address, and must not count as one of the storefront.
  if (!address) {
    const rule = 'must be the IP address of the end user';
    throw new Fault('invalid_query', [{ field: END_USER_ADDRESS, rule }]);
  }
  call.endUserAddress = implicit && isInAny(address, implicit.storefronts) ? undefined : address;
}

/** Checks the password of a request, after `readEndUserAddress`, with its metrics and log entries; a throttled one is a reply. */
export async function checkPassword(
  call: Call,
  mechanism: PasswordMechanism,
  given: Pick<PasswordCheckRequest, 'realmId' | 'profileId' | 'username' | 'password'>,
  deps: SignInDeps,
): Promise<Exclude<PasswordCheckOutcome, { readonly kind: 'throttled' }> | Reply> {
  const { clientId } = call.principal as Principal;
  const { endUserAddress: address } = call;
  const deviceToken = call.request.headers.get(DEVICE) ?? undefined;
  const attempt = openAttempt(call, given.realmId, deps.signIn.count.bind(null, mechanism), deps);
  const outcome = await attempt.run(deps.signIn.check({ ...given, clientId, address, deviceToken }));
  if (outcome.kind === 'throttled') return attempt.throttledReply(outcome);
  // Never split by whether the username exists.
  attempt.count(outcome.kind);
  if (outcome.kind === 'right') await logSignIn(call, outcome.credential, deps);
  return outcome;
}

/** Times a sign-in or sign-up and counts its outcome. */
export function openAttempt(
  { endUserAddress }: Call,
  realmId: Uuid,
  record: (outcome: string, milliseconds: number) => void,
  { signIn, clock }: SignInDeps,
) {
  const startedAt = clock.monotonic();
  const count = (outcome: string): void => record(outcome, clock.monotonic() - startedAt);
  return {
    count,
    /** Settles as the work does. Counts a rejection with Fault `overloaded`, and one with `conflict` as refused. */
    run<T>(work: Promise<T>): Promise<T> {
      return work.catch((error: unknown) => {
        if (error instanceof Fault && error.code === 'overloaded') count('overloaded');
        if (error instanceof Fault && error.code === 'conflict') count('refused');
        throw error;
      });
    },
    /** The answer to an attempt that a budget refuses, which the log counts as well. */
    async throttledReply({ retryAfterS }: ThrottledSignIn): Promise<Reply> {
      count('throttled');
      await signIn.throttled(realmId, endUserAddress);
      return faultReply('rate_limited', { 'Retry-After': String(retryAfterS) });
    },
  };
}

/** Logs a sign-in, with `--log-sign-ins`. */
export async function logSignIn(
  { principal, requestId }: Call,
  { realmId, userId, infoId }: { readonly realmId: Uuid; readonly userId: Uuid; readonly infoId: Uuid },
  { signIn, clock: { now } }: Pick<SignInDeps, 'signIn' | 'clock'>,
  mechanism?: 'oidc',
): Promise<void> {
  const { clientId: actor } = principal as Principal;
  const caller = { actor, address: undefined, requestId };
  const fields = { realm: realmId, user: userId, object: infoId, detail: mechanism ? { mechanism } : {} };
  await signIn.logSuccess?.(createAuditEntry('sign-in.succeeded', fields, { now, caller }));
}
