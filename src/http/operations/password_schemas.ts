import { z } from 'zod';
import { parameter } from '../openapi/parameters.ts';
import { optionalHeader } from '../openapi/responses.ts';
import { lazyComponent } from '../openapi/schemas.ts';
import { DEVICE, END_USER_ADDRESS } from './password_request.ts';

/** Headers of requests that check passwords, in the OpenAPI document. */

/** 86 characters. */
export const DEVICE_EXAMPLE = '9b1c4e7f20a83d56q0pXvB3nS1y8mJc5dR7tKgAAUHU'.padEnd(86, 'x');

/** An account token, in a request by its member. */
export const accountTokenParameter = lazyComponent(() =>
  parameter(z.string(), {
    id: 'account-token',
    description: 'The account token of the member.',
    example: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
  }),
);

/** The address of the end user. */
export const endUserAddressParameter = lazyComponent(() =>
  parameter(z.string(), {
    id: 'end-user-address',
    description: 'The IP address of the end user. Required by the secret of a client that reports addresses.',
    example: '192.0.2.1',
    isExtension: true,
  }),
);

const device = lazyComponent(() =>
  parameter(z.string(), {
    id: 'device',
    description: 'The device token of an earlier sign-in of the same user on this device.',
    example: DEVICE_EXAMPLE,
    isExtension: true,
  }),
);

export const signInParameters = () => ({ [END_USER_ADDRESS]: endUserAddressParameter(), [DEVICE]: device() });

/** A new device token, in an answer to a right password. */
export const deviceHeader = () =>
  optionalHeader(
    'A device token, for `Authrealm-Device` of later sign-ins of this user on this device.',
    DEVICE_EXAMPLE,
    'new-device',
  );
