import { openIdentityProviders } from '../access/issuers/identity_providers.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../access/outbound/guarded_post.ts';
import type { Key } from '../model/resource.ts';
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
    /** Reads the client secret of a profile, which no cache keeps; undefined if there is none. */
    async clientSecret(key: Key): Promise<string | undefined> {
      const sealed = (await linking.store.getStored(oidcProfile, key))?.client_secret;
      if (!(sealed instanceof Uint8Array)) return undefined;
      return keyring.open('oidc-client-secret', secretLocation(oidcProfile, 'client_secret', key), sealed);
    },
    noteFailure(realm: string, profile: string, cause: string): void {
      log.write({ event: 'oidc_sign_in_failed', realm, profile, cause, count: 1 });
    },
  };
}
