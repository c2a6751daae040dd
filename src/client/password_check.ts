import { recordPath } from './address.ts';
import type { CallOptions } from './collection.ts';
import { JSON_BODY, type SendRequest } from './exchange.ts';
import type { WireFormat } from './wires.ts';

/** A username and the password that somebody typed. */
export interface TypedPassword {
  readonly username: string;
  readonly password: string;
}

export interface PasswordCheckOptions extends CallOptions {
  /** The IP address of the end user, which the service requires unless the client reports none. */
  readonly endUserAddress?: string | undefined;
  /** The `device` of an earlier right password of the same user on this device. */
  readonly device?: string | undefined;
}

/** `userId` and `infoId`: the user, and its password profile info. `device`: for later checks on this device. */
export type PasswordCheckResult =
  | { readonly verified: false }
  | { readonly verified: true; readonly userId: string; readonly infoId: string; readonly device: string };

/** Whether the password is the one of the username in the profile. An unknown username has none. */
export type CheckClientPassword = (
  profile: readonly [realm: string, profile: string],
  typed: TypedPassword,
  options?: PasswordCheckOptions,
) => Promise<PasswordCheckResult>;

interface Answer {
  readonly data: {
    readonly verified: boolean;
    readonly device?: string;
    readonly relationships?: Readonly<Record<string, { readonly data: { readonly id: string } }>>;
  };
}

/** `send` must not repeat requests: each one may count as a wrong password. */
export function passwordCheckMethod(profiles: WireFormat, send: SendRequest): CheckClientPassword {
  return async (profile, { username, password }, { endUserAddress, device, signal } = {}) => {
    const headers = {
      ...JSON_BODY,
      ...(endUserAddress === undefined ? {} : { 'Authrealm-End-User-Address': endUserAddress }),
      ...(device === undefined ? {} : { 'Authrealm-Device': device }),
    };
    const path = `${recordPath(profiles, profile, profiles.collections.length)}/check`;
    const body = JSON.stringify({ data: { type: 'password_check', username, password } });
    const answer = await send({ method: 'POST', path, headers, body, signal });
    const { data } = answer.body as Answer;
    if (!data.verified) return { verified: false };
    const idOf = (type: string) => data.relationships?.[type]?.data.id ?? '';
    return {
      verified: true,
      userId: idOf('user_authentication_info'),
      infoId: idOf('user_authentication_password_profile_info'),
      device: data.device ?? '',
    };
  };
}
