import { timingSafeEqual } from 'node:crypto';
import type { Clock, Uuid } from '../../domain/id.ts';
import type { SignInKeys } from './port.ts';

/** The password that a device signed in with. */
export interface DeviceOwner {
  readonly realmId: Uuid;
  /** The password profile info. */
  readonly infoId: Uuid;
  /** The version of its password: a token of an older one is not valid. */
  readonly version: string;
}

/** A valid device token: the device has signed in with the current password of the user before. */
export interface DeviceToken {
  /** Distinguishes this token from others of the same owner. */
  readonly id: string;
}

/** Makes and verifies device tokens (docs/decisions/0024-sign-in-by-password.md#device-tokens). */
export interface DeviceTokens {
  make(owner: DeviceOwner): string;
  /** Undefined unless the token is valid for this owner. Without an owner it does the same work, so that both take equally long. */
  verify(token: string, owner: DeviceOwner | undefined): DeviceToken | undefined;
}

const DAY_MS = 86_400_000;
/** Days after the day of its issue on which a device token is still valid. */
const DEVICE_TOKEN_DAYS = 180;
const ID_BYTES = 16;
const DAY_BYTES = 4;
const MAC_BYTES = 32;
/** Unpadded base64url of the three parts, in its one canonical spelling. */
const TOKEN = /^[A-Za-z0-9_-]{69}[AQgw]$/;

/** A token is base64url of 16 random bytes, the day of issue (days since the epoch, 4 bytes) and the HMAC. No row is stored for it. */
export function openDeviceTokens(
  keys: SignInKeys,
  { now, randomBytes }: Pick<Clock, 'now' | 'randomBytes'>,
): DeviceTokens {
  function macOf(owner: DeviceOwner | undefined, signed: Uint8Array): Uint8Array {
    const { realmId, infoId, version } = owner ?? { realmId: '', infoId: '', version: '' };
    const id = Buffer.from(signed).toString('base64url');
    return keys.signInMac(JSON.stringify(['device', realmId, infoId, version, id]));
  }

  return {
    make(owner) {
      const day = Buffer.alloc(DAY_BYTES);
      day.writeUInt32BE(Math.floor(now() / DAY_MS));
      const signed = Buffer.concat([randomBytes(ID_BYTES), day]);
      return Buffer.concat([signed, macOf(owner, signed)]).toString('base64url');
    },
    verify(token, owner) {
      if (!TOKEN.test(token)) return undefined;
      const bytes = Buffer.from(token, 'base64url');
      const signed = bytes.subarray(0, -MAC_BYTES);
      const isGenuine = timingSafeEqual(macOf(owner, signed), bytes.subarray(-MAC_BYTES));
      const endsAt = (signed.readUInt32BE(ID_BYTES) + DEVICE_TOKEN_DAYS + 1) * DAY_MS;
      if (!isGenuine || !owner || now() >= endsAt) return undefined;
      return { id: signed.subarray(0, ID_BYTES).toString('base64url') };
    },
  };
}
