import { recordPath } from './address.ts';
import type { CallOptions, Described } from './collection.ts';
import { JSON_BODY, type SendRequest } from './exchange.ts';
import type { NewOf } from './record_types.ts';
import { WIRE_FORMATS, type WireFormat } from './wires.ts';

/** A username and the password that somebody typed. */
export interface TypedPassword {
  readonly username: string;
  readonly password: string;
}

export interface EndUserOptions extends CallOptions {
  /** The IP address of the end user, which the service requires unless the client reports none. */
  readonly endUserAddress?: string | undefined;
}

export interface PasswordCheckOptions extends EndUserOptions {
  /** The `device` of an earlier right password of the same user on this device. */
  readonly device?: string | undefined;
}

/** `userId` and `infoId`: the user, and the profile info that was found or created. */
type CheckResult<More> =
  | { readonly verified: false }
  | ({ readonly verified: true; readonly userId: string; readonly infoId: string } & More);

/** `device`: for later checks on this device. */
export type PasswordCheckResult = CheckResult<{ readonly device: string }>;
export type IdTokenCheckResult = CheckResult<{ readonly outcome: 'known' | 'linked' | 'created' }>;

type ProfileKey = readonly [realm: string, profile: string];

/** Requests about end users. Each is sent once, because it may count as a wrong password or a refused token. */
export interface SignInMethods {
  /** Whether the password is the one of the username in the profile. An unknown username has none. */
  checkPassword(
    profile: ProfileKey,
    typed: TypedPassword,
    options?: PasswordCheckOptions,
  ): Promise<PasswordCheckResult>;
  /** Finds, links or creates the user of an ID token. */
  checkIdToken(
    profile: ProfileKey,
    received: {
      readonly idToken: string;
      readonly nonce?: string | undefined;
      /** Links the subject to this user, who is signed in. */
      readonly userId?: string | undefined;
    },
    options?: EndUserOptions,
  ): Promise<IdTokenCheckResult>;
  /** Registers a user with a password in the account realm. `device`: for later password checks on this device. */
  signUp(
    input: NewOf<Described<'users'>> & NewOf<Described<'passwordProfileInfos'>>,
    options?: EndUserOptions,
  ): Promise<{ readonly userId: string; readonly device: string }>;
}

/** What the answers contain; each has a part of it. */
interface SignInAnswer {
  readonly data: {
    readonly verified: boolean;
    readonly device: string;
    readonly outcome: 'known' | 'linked' | 'created';
    readonly relationships: Readonly<Record<string, { readonly data: { readonly id: string } }>>;
  };
  readonly meta: { readonly account_member_id: string };
}

/** `send` must not repeat requests. */
export function signInMethods(send: SendRequest): SignInMethods {
  const post = async (
    path: string,
    data: object,
    { endUserAddress, device, signal }: PasswordCheckOptions = {},
  ) => {
    const headers = {
      ...JSON_BODY,
      ...(endUserAddress === undefined ? {} : { 'Authrealm-End-User-Address': endUserAddress }),
      ...(device === undefined ? {} : { 'Authrealm-Device': device }),
    };
    const answer = await send({ method: 'POST', path, headers, body: JSON.stringify({ data }), signal });
    return { headers: answer.headers, body: answer.body as SignInAnswer };
  };
  const pathOf = (profiles: WireFormat, profile: ProfileKey) =>
    `${recordPath(profiles, profile, profiles.collections.length)}/check`;
  const verified = ({ relationships }: SignInAnswer['data'], infos: WireFormat) => {
    const idOf = ({ type }: WireFormat) => relationships[type]?.data.id ?? '';
    return { verified: true, userId: idOf(WIRE_FORMATS.users), infoId: idOf(infos) } as const;
  };
  return {
    async checkPassword(profile, { username, password }, options) {
      const request = { type: 'password_check', username, password };
      const { data } = (await post(pathOf(WIRE_FORMATS.passwordProfiles, profile), request, options)).body;
      if (!data.verified) return { verified: false };
      return { ...verified(data, WIRE_FORMATS.passwordProfileInfos), device: data.device };
    },
    async checkIdToken(profile, { idToken, nonce, userId }, options) {
      const request = { type: 'oidc_check', id_token: idToken, nonce, user_authentication_info_id: userId };
      const { data } = (await post(pathOf(WIRE_FORMATS.oidcProfiles, profile), request, options)).body;
      if (!data.verified) return { verified: false };
      return { ...verified(data, WIRE_FORMATS.oidcProfileInfos), outcome: data.outcome };
    },
    async signUp(input, options) {
      const type = 'account_management_authentication_token';
      const request = { ...input, type, authentication_mechanism: 'self_signup' };
      const { headers, body } = await post('/v2/account-members/tokens', request, options);
      return { userId: body.meta.account_member_id, device: headers.get('authrealm-device') ?? '' };
    },
  };
}
