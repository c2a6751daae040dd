import type { z } from 'zod';
import { type OidcDeps, signInThroughProvider } from '../http/operations/oidc_request.ts';
import { openAttempt, SIGN_UP_SCOPE } from '../http/operations/password_request.ts';
import { requestContext } from '../http/operations/record_writes.ts';
import type { Call } from '../http/pipeline/call.ts';
import type { Reply } from '../http/server/reply.ts';
import type { Principal } from '../model/principal.ts';
import type { AnyRecord, RecordOf } from '../model/resource.ts';
import type { realm as accountRealm } from '../model/resources.ts';
import { filledText } from '../model/rule.ts';
import type { AccountSignIn } from './account_token.ts';
import { callbackUri } from './oidc_browser.ts';

/** The members of the mechanism `oidc` of the token call (docs/wire.md#account-tokens). */
export const CODE_MEMBERS = {
  oauth_authorization_code: filledText(),
  oauth_redirect_uri: filledText(),
  oauth_code_verifier: filledText(),
};

/** RFC 7636, 4.1. */
const VERIFIER = /^[\w.~-]{43,128}$/;

/**
 * Signs in by a code of the callback: exchanges the code of the provider in it, and finds or makes user and link. `refused` for a code
 * that does not open, another redirect URI or issuer, and a verifier that does not fit, without a request to the provider.
 */
export async function signInByCode(
  call: Call,
  sent: z.output<z.ZodObject<typeof CODE_MEMBERS>>,
  realm: AnyRecord,
  deps: OidcDeps,
): Promise<AccountSignIn | 'refused' | Reply> {
  const { oidc, clock } = deps;
  const attempt = openAttempt(call, realm.id, deps.signIn.countSignIn.bind(null, 'oidc'), deps);
  const opened = oidc.flow.openCode(sent.oauth_authorization_code, realm.id);
  const { oauth_redirect_uri: redirectUri, oauth_code_verifier: verifier } = sent;
  const { redirect_uris: known } = realm as RecordOf<typeof accountRealm>;
  const profile = opened && (await oidc.profileWithSecret([realm.id, opened.profileId]));
  const isVerified = opened && VERIFIER.test(verifier) && oidc.flow.isVerifierOf(opened, verifier);
  if (!isVerified || !profile || oidc.flow.redirectUriOf(opened, profile.issuer, known) !== redirectUri) {
    attempt.count('refused');
    return 'refused';
  }
  const { profileId, providerCode, codeVerifier, nonce } = opened;
  const { issuer, client_id: clientId, clientSecret } = profile;
  const { scopes } = call.principal as Principal;
  const signedIn = await signInThroughProvider(
    call,
    {
      ...{ mechanism: 'oidc', realmId: realm.id, profileId },
      identify: async () => {
        if (clientSecret === undefined) return 'client_secret_unusable';
        return oidc.providers.identifyByCode({
          ...{ issuer, clientId, clientSecret },
          ...{ code: providerCode, codeVerifier, nonce, redirectUri: callbackUri(deps, realm.id, profileId) },
          caller: call.endUserAddress,
        });
      },
      link: (identity) => {
        const mayCreate = scopes.has(SIGN_UP_SCOPE);
        return oidc.linking.link(identity, { realm, profileId, mayCreate }, requestContext(call));
      },
    },
    deps,
  );
  if (signedIn === 'refused' || 'status' in signedIn) return signedIn;
  const { userId, infoId, revision: version, amr } = signedIn;
  // Not that of the provider, whose session may be older than the time in which renewals end.
  const authTime = Math.floor(clock.now() / 1000);
  return { mechanism: 'oidc', realmId: realm.id, userId, infoId, version, authTime, amr };
}
