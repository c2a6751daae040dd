/** Why a request is let in nowhere, as the log counts it. */
export const REFUSED_ACCESS = [
  'no token',
  'bad token',
  'token not checked',
  'bad credentials',
  'foreign origin',
  'insufficient scope',
  'realm outside the list',
] as const;

export type RefusedAccess = (typeof REFUSED_ACCESS)[number];
