import { openProviderMetadata } from '../access/issuers/provider_metadata.ts';
import { openGuardedFetch } from '../access/outbound/guarded_fetch.ts';
import type { OidcDeps } from '../compat/oidc_browser.ts';
import { openOidcFlow } from '../sign_in/oidc_flow.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';

const SCOPES = ['openid', 'email', 'profile'];

/** Sign-in of end users through the OpenID providers of profiles. */
export function openOidcSignIn({ settings, keyring, log, clock }: ServiceContext): OidcDeps['oidc'] {
  const fetchDocument = openGuardedFetch(outboundRules({ settings, log }));
  const providers = new Map<string, ReturnType<typeof openProviderMetadata>>();
  return {
    flow: openOidcFlow(keyring, clock),
    async metadata(issuer) {
      if (settings.offline) return undefined;
      const read = providers.get(issuer) ?? openProviderMetadata(issuer, fetchDocument, clock);
      providers.set(issuer, read);
      const metadata = await read();
      return typeof metadata === 'object' ? { ...metadata, scopes: SCOPES } : undefined;
    },
  };
}
