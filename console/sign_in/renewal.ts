import { callApi } from '../api/call_api.ts';
import { renewSession, type SessionGrant, session } from '../session/session.ts';
import { inOneTab, lastUse, noteUse } from '../session/tabs.ts';

/** Renews the token of the session while one of its tabs is used. Without use it expires, and the session ends. */

/** Time before its end in which a token is renewed, if a tab was used as recently. */
const RENEWAL_MS = 300_000;
const CHECK_MS = 5_000;
const USES = ['pointerdown', 'pointermove', 'keydown', 'wheel'] as const;

export function startRenewal(): void {
  let isRenewing = false;
  for (const name of USES) addEventListener(name, noteUse, { capture: true, passive: true });

  async function renew(token: string): Promise<void> {
    isRenewing = true;
    // A refusal has ended the session; after any other failure the next check tries again.
    const renewed = await callApi<{ data: Omit<SessionGrant, 'label'> }>({
      method: 'PUT',
      path: 'console/token',
    }).catch(() => undefined);
    isRenewing = false;
    // The user may have signed out, or another one in, meanwhile.
    if (renewed && session.get().open?.token === token) renewSession(renewed.body.data);
  }

  setInterval(() => {
    const { open } = session.get();
    const now = performance.now();
    if (!open || isRenewing || open.expiresAt >= open.endsAt) return;
    if (open.expiresAt - now < RENEWAL_MS && now - lastUse() < RENEWAL_MS)
      void inOneTab(open.stored.id, () => renew(open.token));
  }, CHECK_MS);
}
