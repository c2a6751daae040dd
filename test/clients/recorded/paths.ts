import { expect } from 'bun:test';
import type { RecordedRequest } from './recording.ts';

/** The paths of the six resources in recorded requests, and what several clients send. */

export const REALMS = '/v2/authentication-realms';
export const REALM = `${REALMS}/{realm}`;
export const OIDC = `${REALM}/oidc-profiles`;
export const PASSWORDS = `${REALM}/password-profiles`;
export const USERS = `${REALM}/user-authentication-info`;
export const OIDC_LINKS = `${USERS}/{user}/user-authentication-oidc-profile-info`;
export const PASSWORD_LINKS = `${USERS}/{user}/user-authentication-password-profile-info`;

export const get = (path: string, more: Partial<RecordedRequest> = {}): RecordedRequest => ({
  send: `GET ${path}`,
  status: 200,
  ...more,
});

/** A token of access. */
export const grant = (form: Readonly<Record<string, string>>): RecordedRequest => ({
  send: 'POST /oauth/access_token',
  form,
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  status: 200,
  reads: { identifier: form.grant_type as string, expires: expect.any(Number), token_type: 'Bearer' },
  saves: { token: 'access_token' },
});
