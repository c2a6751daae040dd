import { timingSafeEqual } from 'node:crypto';
import type { LogKeys } from '../log/keys.ts';
import type { Clock } from '../model/id.ts';
import type { SignInName } from './credentials.ts';

/** A genuine device token: the device has signed in with this name before. */
export interface DeviceToken {
  /** Distinguishes this token from others of the same name. */
  readonly id: string;
  /** The version of the password that it signed in with. The token is that of a stranger if it is no longer the current one. */
  readonly version: string;
}

const DAY_MS = 86_400_000;
/** Days after the day of its issue on which a device token is still valid. */
const DEVICE_TOKEN_DAYS = 180;
const ID_BYTES = 16;
const DAY_BYTES = 4;
const MAC_BYTES = 32;
/** The version, then unpadded base64url of the other parts, in its one canonical spelling. */
const TOKEN = /^([\w-]{0,32})([\w-]{69}[AQgw])$/;

export type DeviceTokens = ReturnType<typeof openDeviceTokens>;

/**
 * Makes and verifies device tokens (docs/guides/password-guessing.md#device-tokens). A token is the version, then base64url
 * of 16 random bytes, the day of issue (days since the epoch, 4 bytes) and the HMAC. No row is stored for it.
 */
export function openDeviceTokens(
  keys: Pick<LogKeys, 'signInMac'>,
  { now, randomBytes }: Pick<Clock, 'now' | 'randomBytes'>,
) {
  function macOf({ realmId, profileId, usernameKey }: SignInName, version: string, signed: Uint8Array) {
    const id = Buffer.from(signed).toString('base64url');
    return keys.signInMac(JSON.stringify(['device', realmId, profileId, usernameKey, version, id]));
  }

  return {
    make(name: SignInName, version: string): string {
      const day = Buffer.alloc(DAY_BYTES);
      day.writeUInt32BE(Math.floor(now() / DAY_MS));
      const signed = Buffer.concat([randomBytes(ID_BYTES), day]);
      return version + Buffer.concat([signed, macOf(name, version, signed)]).toString('base64url');
    },
    /** Undefined unless the token was made for this name and has not expired. Reads nothing, so that it takes as long for every name. */
    verify(token: string, name: SignInName): DeviceToken | undefined {
      const [, version = '', rest] = TOKEN.exec(token) ?? [];
      if (rest === undefined) return undefined;
      const bytes = Buffer.from(rest, 'base64url');
      const signed = bytes.subarray(0, -MAC_BYTES);
      const isGenuine = timingSafeEqual(macOf(name, version, signed), bytes.subarray(-MAC_BYTES));
      const endsAt = (signed.readUInt32BE(ID_BYTES) + DEVICE_TOKEN_DAYS + 1) * DAY_MS;
      if (!isGenuine || now() >= endsAt) return undefined;
      return { id: signed.subarray(0, ID_BYTES).toString('base64url'), version };
    },
  };
}
