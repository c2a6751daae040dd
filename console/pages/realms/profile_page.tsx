import { RESOURCES, readRecord } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { RecordFacts } from '../../parts/facts.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { RecordActions, realmBreadcrumbs } from './record_views.tsx';

export function OidcProfilePage({ parameters }: PageProps) {
  return <ProfileView description={RESOURCES.oidcProfiles} parameters={parameters} />;
}

export function PasswordProfilePage({ parameters }: PageProps) {
  return <ProfileView description={RESOURCES.passwordProfiles} parameters={parameters} />;
}

/** A profile that users sign in through. */
function ProfileView({
  description,
  parameters: { realm = '', profile = '' },
}: PageProps & { readonly description: Description }) {
  const fetched = useFetch((signal) => readRecord(description, [realm, profile], signal), [realm, profile]);
  const { one } = resourceLabel(description.name);
  const name = fetched.answer ? String(fetched.answer.record.name) : one;
  return (
    <>
      <PageHead
        title={name}
        heading={fetched.answer ? <UntrustedText text={name} /> : undefined}
        breadcrumbs={realmBreadcrumbs(realm)}
        actions={
          fetched.answer && (
            <RecordActions
              description={description}
              recordKey={[realm, profile]}
              loaded={fetched.answer}
              consequence="User links to it are deleted as well."
              after={href('realms', realm)}
              onChanged={fetched.reload}
            />
          )
        }
      />
      <Loaded fetched={fetched}>
        {({ record }) => (
          <section class="card" aria-label={`This ${one}`}>
            <RecordFacts description={description} record={record} />
          </section>
        )}
      </Loaded>
    </>
  );
}
