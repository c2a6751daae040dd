/** Reasons for which access is refused, as the log counts them. */
export type RefusedAccess =
  | 'no token'
  | 'bad token'
  | 'token not checked'
  | 'bad credentials'
  | 'too many grants'
  | 'foreign origin'
  | 'insufficient scope'
  | 'realm outside the list'
  | 'not the account realm';
