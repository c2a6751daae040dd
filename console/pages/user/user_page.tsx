import { useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { RecordFacts } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, session } from '../../session/session.ts';
import { aboveIn } from '../realms/record_views.tsx';
import { type Act, Acts } from './dialogs.tsx';
import { History } from './history.tsx';
import { LinkControls, Picture } from './identity_graph.tsx';
import { LINK_KINDS, readWhole, type Whole } from './load_user.ts';

/** Who a user is, and every way in which they sign in. */
export function UserPage({ parameters }: PageProps) {
  const { realm = '', user: id = '' } = parameters;
  const state = useObserved(session);
  const [pages, setPages] = useState(1);
  const asked = useAsked((signal) => readWhole([realm, id], pages, state, signal), [realm, id]);
  const readMore = () => {
    setPages(pages + 1);
    asked.again();
  };
  const [act, setAct] = useState<Act>();
  const name = asked.answer ? String(asked.answer.user.record.name) : 'User';
  return (
    <>
      <PageHead
        title={name}
        heading={asked.answer ? <Said text={name} /> : undefined}
        above={[...aboveIn(realm), { label: 'Users', href: href('realms', realm, 'users') }]}
        actions={asked.answer && <UserActions onAct={setAct} />}
      />
      <Answered asked={asked}>
        {(whole) => (
          <UserView
            realm={realm}
            whole={whole}
            isWaiting={asked.isWaiting}
            onMore={readMore}
            onAct={setAct}
          />
        )}
      </Answered>
      {act && asked.answer && (
        <Acts
          realm={realm}
          whole={asked.answer}
          act={act}
          onChanged={asked.again}
          onClose={() => setAct(undefined)}
        />
      )}
    </>
  );
}

function UserActions({ onAct }: { readonly onAct: (act: Act) => void }) {
  const state = useObserved(session);
  const isWriter = may(state, `${RESOURCES.users.scope}:write`);
  return (
    <>
      {isWriter && (
        <button type="button" class="button" onClick={() => onAct({ kind: 'edit' })}>
          <Icon name="edit" /> Edit
        </button>
      )}
      {isWriter && (
        <button type="button" class="button" onClick={() => onAct({ kind: 'delete' })}>
          <Icon name="remove" /> Delete
        </button>
      )}
      {may(state, 'admin') && (
        <button type="button" class="button button-risky" onClick={() => onAct({ kind: 'erase' })}>
          Erase permanently
        </button>
      )}
    </>
  );
}

interface UserViewProps {
  readonly realm: string;
  readonly whole: Whole;
  readonly isWaiting: boolean;
  /** More links are asked for. */
  readonly onMore: () => void;
  readonly onAct: (act: Act) => void;
}

function UserView({ realm, whole, isWaiting, onMore, onAct }: UserViewProps) {
  const { user, links, unseen, hasMore } = whole;
  const controls = (link: Whole['links'][number]) => <LinkControls link={link} onAct={onAct} />;
  return (
    <>
      <section class="card" aria-label="How this user signs in">
        <div class="card-head">
          <h2>How this user signs in</h2>
          <AddLinks onAct={onAct} />
        </div>
        {links.length > 0 && <Picture realm={realm} user={user.record} links={links} controls={controls} />}
        {links.length === 0 && unseen.length < LINK_KINDS.length && <NoLinks />}
        {hasMore && (
          <div class="note note-warn">
            <Icon name="warning" />
            <div class="stack-tight">
              <p>Showing the first {links.length} links of this user.</p>
              <button type="button" class="button" disabled={isWaiting} onClick={onMore}>
                Show more links
              </button>
            </div>
          </div>
        )}
        {unseen.length > 0 && (
          <p class="faint small">
            Not visible to this session: {unseen.map(({ name }) => nounOf(name).many).join(', ')}.
          </p>
        )}
      </section>
      <section class="card" aria-label="Profile">
        <div class="card-head">
          <h2>Profile</h2>
        </div>
        <RecordFacts description={RESOURCES.users} record={user.record} />
      </section>
      <History key={user.etag} realm={realm} user={user.record.id} />
    </>
  );
}

function NoLinks() {
  return (
    <Empty icon="link" title="No links yet">
      <p>Link the user to a subject at an issuer, or to a username with a password.</p>
    </Empty>
  );
}

function AddLinks({ onAct }: { readonly onAct: (act: Act) => void }) {
  const state = useObserved(session);
  return (
    <div class="actions">
      {LINK_KINDS.filter(({ description }) => may(state, `${description.scope}:write`)).map((kind) => (
        <button
          key={kind.name}
          type="button"
          class="button"
          onClick={() => onAct({ kind: 'add', links: kind })}
        >
          <Icon name="add" /> Add {nounOf(kind.description.name).one}
        </button>
      ))}
    </div>
  );
}
