/** Reasons for which access is refused, as the log counts them. */
export const REFUSED_ACCESS = [
  'no token',
  'bad token',
  'token not checked',
  'bad credentials',
  'too many grants',
  'foreign origin',
  'insufficient scope',
  'realm outside the list',
] as const;

export type RefusedAccess = (typeof REFUSED_ACCESS)[number];
