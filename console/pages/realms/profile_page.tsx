import { RESOURCES } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { RecordPage, realmBreadcrumbs } from './record_views.tsx';

export function OidcProfilePage({ parameters }: PageProps) {
  return (
    <RecordPage
      {...ofProfile(RESOURCES.oidcProfiles, parameters)}
      facts={({ links }) => <RedirectUri uri={links['callback-endpoint'] ?? ''} />}
    />
  );
}

export function PasswordProfilePage({ parameters }: PageProps) {
  return <RecordPage {...ofProfile(RESOURCES.passwordProfiles, parameters)} />;
}

/** The page of a profile that users sign in through. */
function ofProfile(description: Description, { realm = '', profile = '' }: PageProps['parameters']) {
  return {
    ...{ description, recordKey: [realm, profile], breadcrumbs: realmBreadcrumbs(realm) },
    consequence: 'User links to it are deleted as well.',
    after: href('realms', realm),
  };
}

/** Where the provider sends browsers back. */
function RedirectUri({ uri }: { readonly uri: string }) {
  return (
    <Fact label="Redirect URI">
      <UntrustedText text={uri} /> <CopyButton text={uri} what="the redirect URI" />
      <p class="hint">
        Add it to the application at the provider. It works in the account realm, once that realm has the
        redirect URIs of the storefront.
      </p>
    </Fact>
  );
}
