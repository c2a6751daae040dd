import { openIdentityProviders } from '../access/issuers/identity_providers.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../access/outbound/guarded_post.ts';
import type { Key, RecordOf } from '../model/resource.ts';
import { oidcProfile } from '../model/resources.ts';
import { secretLocation } from '../records/format.ts';
import { openIdentityLinking } from '../records/identity_linking.ts';
import { openOidcFlow } from '../sign_in/oidc_flow.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';

/** Sign-in of end users through the OpenID providers of profiles. */
export function openOidcSignIn(
  { settings, keyring, log, clock }: ServiceContext,
  linking: Parameters<typeof openIdentityLinking>[0],
) {
  const rules = outboundRules({ settings, log });
  return {
    flow: openOidcFlow(keyring, clock),
    linking: openIdentityLinking(linking),
    providers: openIdentityProviders({
      fetchDocument: openGuardedFetch(rules),
      postForm: openGuardedForm(rules),
      clock,
      offline: settings.offline,
    }),
    /** Reads a profile with its client secret, which no cache keeps: in one read, since the secret is for its issuer alone. */
    async profileWithSecret(key: Key) {
      const stored = await linking.store.getStored(oidcProfile, key);
      const sealed = stored?.client_secret;
      const place = secretLocation(oidcProfile, 'client_secret', key);
      const clientSecret =
        sealed instanceof Uint8Array ? keyring.open('oidc-client-secret', place, sealed) : undefined;
      return stored && { ...(stored as RecordOf<typeof oidcProfile>), clientSecret };
    },
    noteFailure(realm: string, profile: string, cause: string): void {
      log.write({ event: 'oidc_sign_in_failed', realm, profile, cause, count: 1 });
    },
  };
}
