import { closeSession, session } from '../session/session.ts';
import { shareSignOut } from '../session/tabs.ts';
import { callApi } from './call_api.ts';

/** Ends the session in all its tabs, in any case; an unrevoked token expires by itself. */
export function signOut(): void {
  void revokeToken();
  shareSignOut();
  closeSession('You have signed out.');
}

/** Revokes the token of the session. */
export async function revokeToken(): Promise<void> {
  if (session.get().open === undefined) return;
  await callApi({ method: 'DELETE', path: 'console/token' }).catch(() => undefined);
}
