import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { LINK_KINDS, type LinkKind } from '../user/load_user.ts';
import { RecordPage, realmBreadcrumbs } from './record_views.tsx';

const [PROVIDER, PASSWORD] = LINK_KINDS;

export function OidcProfilePage({ parameters }: PageProps) {
  return (
    <RecordPage
      {...ofProfile(PROVIDER, parameters)}
      facts={({ links }) => <RedirectUri uri={links['callback-endpoint'] ?? ''} />}
    />
  );
}

export function PasswordProfilePage({ parameters }: PageProps) {
  return <RecordPage {...ofProfile(PASSWORD, parameters)} />;
}

/** The page of a provider or a password profile. */
function ofProfile(kind: LinkKind, { realm = '', profile = '' }: PageProps['parameters']) {
  return {
    ...{ description: kind.profiles, recordKey: [realm, profile], breadcrumbs: realmBreadcrumbs(realm) },
    consequence: `Its ${kind.description.words[1]} are deleted as well.`,
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
