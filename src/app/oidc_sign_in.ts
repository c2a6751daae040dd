import { openIdentityProviders } from '../access/issuers/identity_providers.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import { openGuardedForm } from '../access/outbound/guarded_post.ts';
import type { Uuid } from '../model/id.ts';
import type { Key } from '../model/resource.ts';
import { oidcProfile } from '../model/resources.ts';
import type { Store } from '../model/store.ts';
import type { WriteRecords } from '../records/directory.ts';
import { secretLocation } from '../records/format.ts';
import { openIdentityLinking } from '../records/identity_linking.ts';
import { openOidcFlow } from '../sign_in/oidc_flow.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';

/** Sign-in of end users through the OpenID providers of profiles. */
export function openOidcSignIn(
  { settings, engine, keyring, log, clock }: ServiceContext,
  { store, writeRecords }: { readonly store: Store; readonly writeRecords: WriteRecords },
) {
  const rules = outboundRules({ settings, log });
  return {
    flow: openOidcFlow(keyring, clock),
    linking: openIdentityLinking({ store, writeRecords }),
    providers: openIdentityProviders({
      fetchDocument: openGuardedFetch(rules),
      postForm: openGuardedForm(rules),
      clock,
      offline: settings.offline,
    }),
    /** Reads the client secret of a profile, which no cache keeps; undefined if there is none. */
    async clientSecret(key: Key): Promise<string | undefined> {
      const sealed = (await engine.records.getStored(oidcProfile, key))?.client_secret;
      if (!(sealed instanceof Uint8Array)) return undefined;
      return keyring.open('oidc-client-secret', secretLocation(oidcProfile, 'client_secret', key), sealed);
    },
    /** Returns the function that logs the outcomes at the provider of a profile. */
    noteProvider:
      (realm: Uuid, profile: Uuid) =>
      (outcome: string): void =>
        log.write({ event: 'oidc_provider', realm, profile, outcome }),
    noteRefusal: (realm: Uuid, profile: Uuid, cause: string): void =>
      log.write({ event: 'oidc_sign_in_refused', realm, profile, cause, count: 1 }),
  };
}
