import { callApi } from '../api/call_api.ts';
import { renewSession, type SessionGrant, session } from '../session/session.ts';

/** Renews the token of the session while the page is used. Without use it expires, and the session ends. */

/** Time before its end in which a token is renewed, if the page was used as recently. */
const RENEWAL_MS = 300_000;
const CHECK_MS = 5_000;
const USES = ['pointerdown', 'pointermove', 'keydown', 'wheel'] as const;

export function startRenewal(): void {
  let usedAt = performance.now();
  let isRenewing = false;
  const onUse = () => {
    usedAt = performance.now();
  };
  for (const name of USES) addEventListener(name, onUse, { capture: true, passive: true });

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
    if (open.expiresAt - now < RENEWAL_MS && now - usedAt < RENEWAL_MS) void renew(open.token);
  }, CHECK_MS);
}
