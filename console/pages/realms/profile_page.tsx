import { useAsked } from '../../api/answers.ts';
import { RESOURCES, readRecord } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { PageHead } from '../../layout/head.tsx';
import type { PageProps } from '../../layout/page.ts';
import { href } from '../../layout/router.ts';
import { RecordFacts } from '../../parts/facts.tsx';
import { Answered } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import { aboveIn } from './above.tsx';
import { ProviderCard } from './provider_card.tsx';
import { RecordActions } from './record_actions.tsx';

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
  const asked = useAsked((signal) => readRecord(description, [realm, profile], signal), [realm, profile]);
  const { one } = nounOf(description.name);
  const name = asked.answer ? String(asked.answer.record.name) : one;
  return (
    <>
      <PageHead
        title={name}
        heading={asked.answer ? <Said text={name} /> : undefined}
        above={aboveIn(realm)}
        actions={
          asked.answer && (
            <RecordActions
              description={description}
              recordKey={[realm, profile]}
              tagged={asked.answer}
              consequence="Links of users to it go with it."
              after={href('realms', realm)}
              onChanged={asked.again}
            />
          )
        }
      />
      <Answered asked={asked}>
        {({ record }) => (
          <>
            <section class="card" aria-label={`This ${one}`}>
              <RecordFacts description={description} record={record} />
            </section>
            {description.name === RESOURCES.oidcProfiles.name && (
              <ProviderCard
                recordKey={[realm, profile]}
                issuer={String(record.issuer)}
                discoveryUrl={String(record.discovery_url)}
              />
            )}
          </>
        )}
      </Answered>
    </>
  );
}
