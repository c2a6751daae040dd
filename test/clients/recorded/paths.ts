import type { RecordedRequest } from './recording.ts';

/** The paths of the six resources in recorded requests. */

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
