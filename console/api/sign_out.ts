import { closeSession, session } from '../session/session.ts';
import { ask } from './call_api.ts';

/** Ends the session here whatever the service says; a token that it could not be told of ends by itself. */
export function signOut(): void {
  void revokeToken();
  closeSession('You have signed out.');
}

/** Tells the service that the token of the session is not needed any more, where that is one of the console. */
export async function revokeToken(): Promise<void> {
  const method = session.get().open?.method;
  if (method === undefined || method === 'client_credentials') return;
  await ask({ method: 'DELETE', path: 'console/token' }).catch(() => undefined);
}
