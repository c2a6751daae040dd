import { z } from 'zod';
import {
  logSignIn,
  openAttempt,
  SIGN_UP_SCOPE,
  type SignInDeps,
} from '../http/operations/password_request.ts';
import { requestContext } from '../http/operations/record_writes.ts';
import type { Call } from '../http/pipeline/call.ts';
import { refuseWithout } from '../http/pipeline/pipeline.ts';
import { faultReply, type Reply } from '../http/server/reply.ts';
import { accountSettingsOf } from '../model/account_settings.ts';
import { Fault } from '../model/fault.ts';
import type { Uuid } from '../model/id.ts';
import type { Principal } from '../model/principal.ts';
import type { AnyRecord } from '../model/resource.ts';
import { passwordProfileInfo, user } from '../model/resources.ts';
import { foldedKey } from '../model/text/folded_key.ts';
import type { Credential } from '../sign_in/store/credentials.ts';

/** The mechanism `self_signup` of the token call: a visitor becomes a user with a password (docs/wire.md#account-tokens). */

const { name, email, given_name, middle_name, family_name } = user.members;

/** The members of its request, by the rules of a user and of a password profile info. */
export const SELF_SIGNUP = {
  password_profile_id: z.string(),
  username: passwordProfileInfo.members.username,
  password: passwordProfileInfo.inputs.password.schema,
  ...{ name, email, given_name, middle_name, family_name },
};

type SelfSignup = z.output<z.ZodObject<typeof SELF_SIGNUP>>;

/** A new user, and the first device token. */
interface SignedUp {
  readonly kind: 'right';
  readonly credential: Pick<Credential, 'userId' | 'infoId' | 'version'>;
  readonly deviceToken: string;
}

const SWITCHED_OFF = faultReply(
  'insufficient_scope',
  {},
  'enable_self_signup is false in the account settings',
);

/** Refuses a caller without the scope, and every caller unless the account settings enable self-signup. */
export function refuseSelfSignup(call: Call, accountRealm: AnyRecord | undefined): Reply | undefined {
  const refused = refuseWithout(call, [SIGN_UP_SCOPE]);
  if (refused) return refused;
  return accountRealm && !accountSettingsOf(accountRealm).enable_self_signup ? SWITCHED_OFF : undefined;
}

/**
 * Creates the user and the username in one commit, within the budget of sign-ups. Rejects with Fault `conflict` if the username is
 * taken, and with `overloaded`, without hashing the password.
 */
export async function signUp(
  call: Call,
  { realmId, profileId }: { readonly realmId: Uuid; readonly profileId: Uuid },
  signup: SelfSignup,
  deps: SignInDeps,
): Promise<SignedUp | Reply> {
  const { signIn } = deps;
  const attempt = openAttempt(call, realmId, signIn.countSignIn.bind(null, 'self_signup'), deps);
  const { clientId } = call.principal as Principal;
  const signInName = { realmId, profileId, usernameKey: foldedKey(signup.username) };
  const signUpAttempt = { ...signInName, clientId, address: call.endUserAddress, device: undefined };
  const create = () => createUser(call, { realmId, profileId }, signup, deps);
  const credential = await attempt.run(signIn.signUp(signUpAttempt, create));
  if ('retryAfterS' in credential) return attempt.throttledReply(credential);
  attempt.count('created');
  await logSignIn(call, { realmId, ...credential }, deps);
  const deviceToken = signIn.makeDevice(signInName, credential.version);
  return { kind: 'right', credential, deviceToken };
}

async function createUser(
  call: Call,
  { realmId, profileId }: { readonly realmId: Uuid; readonly profileId: Uuid },
  { username, password, password_profile_id: _, ...members }: SelfSignup,
  { writeRecords }: SignInDeps,
): Promise<SignedUp['credential']> {
  const { type } = passwordProfileInfo;
  const body = {
    data: { ...members, type: user.type },
    included: [{ type, username, password, password_profile_id: profileId }],
  };
  // Nobody has proved that the address is that of the user.
  const fixed = { email_vouched: false };
  const request = { verb: 'create', resource: user, scope: [realmId], body, fixed } as const;
  const written = await writeRecords([request], requestContext(call)).catch((error: unknown) => {
    throw error instanceof Fault ? aboutMembers(error) : error;
  });
  const [created, link] = [written?.created[0], written?.included[0]];
  if (!created || !link) throw new Error('a self-signup created no records');
  return { userId: created.record.id, infoId: link.record.id, version: link.record.revision };
}

/** A request has the members of both records in `data`. */
function aboutMembers({ code, fieldErrors, cause, isPassing }: Fault): Fault {
  const moved = fieldErrors.map((error) => ({
    ...error,
    field: error.field.replace(/^included\.0\./, 'data.'),
  }));
  return new Fault(code, moved, cause, isPassing);
}
