import type { ComponentProps } from 'preact';
import { RESOURCES } from '../../api/records.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href, navigate } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState } from '../../parts/notices.tsx';
import { capitalized, valueLabel } from '../../parts/resource_labels.ts';
import { hasScope, session } from '../../session/session.ts';
import { LINK_KINDS, type LinkKind } from '../user/load_user.ts';
import { CreateButton, RecordList, RecordPage } from './record_views.tsx';

const [PROVIDER, PASSWORD] = LINK_KINDS;

/** All realms visible to this session. */
export function RealmsPage() {
  const realms = RESOURCES.realms;
  return (
    <>
      <PageHead
        title="Realms"
        actions={
          <CreateButton
            description={realms}
            parentKey={[]}
            onDone={({ record }) => navigate(href('realms', record.id))}
          />
        }
      />
      <RecordList
        description={realms}
        parentKey={[]}
        hrefOf={({ id }) => href('realms', id)}
        more={({ id }) => id}
        empty={
          <EmptyState icon="realms" title="No realms yet">
            <p>A realm holds users and the ways in which they sign in. Create one to start.</p>
          </EmptyState>
        }
      />
    </>
  );
}

/** A realm with its providers and password profiles. */
export function RealmPage({ parameters: { realm = '' } }: PageProps) {
  const state = useObservable(session);
  return (
    <>
      <RecordPage
        description={RESOURCES.realms}
        recordKey={[realm]}
        breadcrumbs={[{ label: 'Realms', href: href('realms') }]}
        consequence="Its users, links, usernames, providers and password profiles are deleted as well."
        after={href('realms')}
        actions={
          hasScope(state, 'users:read') && (
            <a class="button" href={href('realms', realm, 'users')}>
              <Icon name="user" /> Users
            </a>
          )
        }
      />
      {hasScope(state, 'profiles:read') && (
        <>
          <Profiles
            realm={realm}
            kind={PROVIDER}
            introduction={<ProviderSteps />}
            hintsFor={() => PROVIDER_HINTS}
          />
          <Profiles realm={realm} kind={PASSWORD} />
        </>
      )}
    </>
  );
}

/** How a provider and this realm come to know each other. */
function ProviderSteps() {
  return (
    <ol class="steps">
      <li>Register an application at the provider: it has a client ID and a client secret then.</li>
      <li>Create the provider here, with both.</li>
      <li>Copy the redirect URI from the page that opens.</li>
      <li>Add it to the application at the provider.</li>
    </ol>
  );
}

const PROVIDER_HINTS = {
  discovery_url:
    'For Entra ID https://login.microsoftonline.com/TENANT/v2.0/.well-known/openid-configuration, where TENANT is the ID of your directory. Of others the address before /.well-known differs: https://accounts.google.com, https://DOMAIN.okta.com, https://HOST/realms/REALM for Keycloak.',
  client_id:
    'The ID that the provider has given the application, such as 6731de76-14a6-49ae-97bc-6eba6914391e.',
  client_secret: 'The value of the secret, not its ID. It is never shown again.',
};

interface ProfilesProps extends Pick<ComponentProps<typeof CreateButton>, 'introduction' | 'hintsFor'> {
  readonly realm: string;
  readonly kind: LinkKind;
}

function Profiles({ realm, kind, ...form }: ProfilesProps) {
  const { profiles, description: links } = kind;
  const [, many] = profiles.words;
  const path = profiles.collections.at(-1) ?? '';
  return (
    <section class="section" aria-label={many}>
      <div class="card-head">
        <h2>{capitalized(many)}</h2>
        <CreateButton
          {...form}
          description={profiles}
          parentKey={[realm]}
          onDone={({ record }) => navigate(href('realms', realm, path, record.id))}
        />
      </div>
      <RecordList
        description={profiles}
        parentKey={[realm]}
        hrefOf={({ id }) => href('realms', realm, path, id)}
        more={({ issuer, username_format: format }) =>
          String(issuer ?? `usernames: ${valueLabel('username_format', String(format))}`)
        }
        empty={
          <EmptyState icon="profile" title={`No ${many} yet`}>
            <p>{`${profiles.summary} Once it exists, users of this realm can have ${links.words[1]}.`}</p>
          </EmptyState>
        }
      />
    </section>
  );
}
