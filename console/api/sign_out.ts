import { closeSession, session } from '../session/session.ts';
import { callApi } from './call_api.ts';

/** Ends the session locally in any case; an unrevoked token expires by itself. */
export function signOut(): void {
  void revokeToken();
  closeSession('You have signed out.');
}

/** Revokes the token of the session if it is a console token. */
export async function revokeToken(): Promise<void> {
  const method = session.get().open?.method;
  if (method === undefined || method === 'client_credentials') return;
  await callApi({ method: 'DELETE', path: 'console/token' }).catch(() => undefined);
}
