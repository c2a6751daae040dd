import { RESOURCES, readRecord } from '../../api/records.ts';
import { useAsked } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { go, href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { RecordFacts } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, session } from '../../session/session.ts';
import { aboveIn, CreateButton, RecordActions, RecordList } from './record_views.tsx';

/** All realms that this session may see. */
export function RealmsPage() {
  const realms = RESOURCES.realms;
  return (
    <>
      <PageHead
        title="Realms"
        actions={
          <CreateButton
            description={realms}
            above={[]}
            onDone={({ record }) => go(href('realms', record.id))}
          />
        }
      />
      <RecordList
        description={realms}
        above={[]}
        hrefOf={({ id }) => href('realms', id)}
        more={({ id }) => id}
        empty={
          <Empty icon="realms" title="No realm yet">
            <p>A realm holds users and the profiles they sign in through. Create one to start.</p>
          </Empty>
        }
      />
    </>
  );
}

/** A realm: what it is, its profiles, and the way to its users. */
export function RealmPage({ parameters: { realm = '' } }: PageProps) {
  const state = useObserved(session);
  const asked = useAsked((signal) => readRecord(RESOURCES.realms, [realm], signal), [realm]);
  const name = asked.answer ? String(asked.answer.record.name) : 'Realm';
  return (
    <>
      <PageHead
        title={name}
        heading={asked.answer ? <Said text={name} /> : undefined}
        above={[{ label: 'Realms', href: href('realms') }]}
        actions={
          <>
            {may(state, 'users:read') && (
              <a class="button" href={href('realms', realm, 'users')}>
                <Icon name="user" /> Users
              </a>
            )}
            {asked.answer && (
              <RecordActions
                description={RESOURCES.realms}
                recordKey={[realm]}
                tagged={asked.answer}
                consequence="All of its users, links and profiles are deleted as well."
                after={href('realms')}
                onChanged={asked.again}
              />
            )}
          </>
        }
      />
      <Answered asked={asked}>
        {({ record }) => (
          <section class="card" aria-label="This realm">
            <RecordFacts description={RESOURCES.realms} record={record} />
          </section>
        )}
      </Answered>
      {may(state, 'profiles:read') && (
        <>
          <Profiles realm={realm} description={RESOURCES.oidcProfiles} path="oidc-profiles" />
          <Profiles realm={realm} description={RESOURCES.passwordProfiles} path="password-profiles" />
        </>
      )}
    </>
  );
}

interface ProfilesProps {
  readonly realm: string;
  readonly description: Description;
  readonly path: string;
}

function Profiles({ realm, description, path }: ProfilesProps) {
  const { many } = nounOf(description.name);
  return (
    <section class="section" aria-label={many}>
      <div class="card-head">
        <h2>{many.charAt(0).toUpperCase() + many.slice(1)}</h2>
        <CreateButton
          description={description}
          above={[realm]}
          onDone={({ record }) => go(href('realms', realm, path, record.id))}
        />
      </div>
      <RecordList
        description={description}
        above={[realm]}
        hrefOf={({ id }) => href('realms', realm, path, id)}
        more={({ issuer, username_format }) => String(issuer ?? `usernames: ${username_format}`)}
        empty={
          <Empty icon="profile" title={`No ${many} yet`}>
            <p>{description.summary} Once it exists, users of this realm can be linked to it.</p>
          </Empty>
        }
      />
    </section>
  );
}

/** The users of a realm, however many. */
export function UsersPage({ parameters: { realm = '' } }: PageProps) {
  const { users } = RESOURCES;
  return (
    <>
      <PageHead
        title="Users"
        above={aboveIn(realm)}
        actions={
          <CreateButton
            description={users}
            above={[realm]}
            onDone={({ record }) => go(href('realms', realm, 'users', record.id))}
          />
        }
      />
      <RecordList
        description={users}
        above={[realm]}
        hrefOf={({ id }) => href('realms', realm, 'users', id)}
        more={({ email }) => String(email)}
        empty={
          <Empty icon="user" title="No user in this realm yet">
            <p>
              Create the first one here, or import many at once with <code>authrealm import</code>.
            </p>
          </Empty>
        }
      />
    </>
  );
}
