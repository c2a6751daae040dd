import type { Description } from '../description.ts';
import { may, type SessionState } from '../session/session.ts';

/** Whether this session may make and remove such records: what hangs under nothing, only one that may touch every realm. */
export function mayMakeOrRemove(state: SessionState, { scope, parent }: Description): boolean {
  return may(state, `${scope}:write`) && (parent !== undefined || state.open?.realms === '*');
}
