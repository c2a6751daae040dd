import { openIdentityProviders } from '../access/issuers/identity_providers.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../access/outbound/guarded_post.ts';
import { attempt } from '../model/attempt.ts';
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
    /** Reads a profile with its client secret, which no cache keeps: undefined if there is none that the master key opens. */
    async profileWithSecret(key: Key) {
      // One read: the secret is for this issuer alone.
      const stored = await linking.store.getStored(oidcProfile, key);
      const place = secretLocation(oidcProfile, 'client_secret', key);
      const open = () => keyring.open('oidc-client-secret', place, stored?.client_secret as Uint8Array);
      return stored && { ...(stored as RecordOf<typeof oidcProfile>), clientSecret: attempt(open) };
    },
    noteFailure(realm: string, profile: string, cause: string): void {
      log.write({ event: 'oidc_sign_in_failed', realm, profile, cause, count: 1 });
    },
  };
}
