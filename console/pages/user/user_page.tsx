import { useState } from 'preact/hooks';
import type { Problem } from '../../api/problem.ts';
import { type ApiRecord, RESOURCES } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { fieldsOf } from '../../form/record_form.tsx';
import { PageHead, type PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { RecordFacts } from '../../parts/facts.tsx';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { EmptyState, Loaded, Loading, ProblemNote } from '../../parts/notices.tsx';
import { capitalized } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, type SessionState, session } from '../../session/session.ts';
import { actorName } from '../changes/actors.ts';
import type { Entry } from '../changes/entry.ts';
import { realmBreadcrumbs } from '../realms/record_views.tsx';
import { type Action, type UserAction, UserDialog } from './dialogs.tsx';
import { History, useChanges } from './history.tsx';
import { linkOrigin } from './link_origin.ts';
import { LinksTable } from './links_table.tsx';
import { LINK_KINDS, type Link, loadUser, nameOf, type UserWithLinks } from './load_user.ts';
import { SignInState, STATE_SCOPE } from './sign_in_state.tsx';

/** The page of a user. */
export function UserPage({ parameters }: PageProps) {
  const { realm = '', user: id = '' } = parameters;
  const state = useObservable(session);
  const [pages, setPages] = useState(1);
  const fetched = useFetch((signal) => loadUser([realm, id], pages, state, signal), [realm, id]);
  const readMore = () => {
    setPages(pages + 1);
    fetched.reload();
  };
  const { problem } = fetched;
  const isGone = problem?.kind === 'absent';
  const [action, setAction] = useState<Action>();
  const [removed, setRemoved] = useState<Link>();
  return (
    <>
      <PageHead
        title={String(fetched.answer?.user.record.name ?? 'User')}
        breadcrumbs={[...realmBreadcrumbs(realm), { label: 'Users', href: href('realms', realm, 'users') }]}
        actions={
          fetched.answer && !isGone && <UserActions user={fetched.answer.user.record} onAction={setAction} />
        }
      />
      {removed && <RemovedLink link={removed} onAction={setAction} />}
      {isGone ? (
        <GoneUser realm={realm} user={id} problem={problem} />
      ) : (
        <Loaded fetched={fetched}>
          {(loaded) => (
            <UserView
              realm={realm}
              loaded={loaded}
              isWaiting={fetched.isWaiting}
              onMore={readMore}
              onAction={setAction}
            />
          )}
        </Loaded>
      )}
      {action && fetched.answer && (
        <UserDialog
          realm={realm}
          loaded={fetched.answer}
          action={action}
          onChanged={() => {
            if (action.kind === 'add') setRemoved(undefined);
            fetched.reload();
          }}
          onRemoved={setRemoved}
          onClose={() => setAction(undefined)}
        />
      )}
    </>
  );
}

interface GoneUserProps {
  readonly realm: string;
  readonly user: string;
  readonly problem: Problem;
}

/** When a user that is not found was deleted or erased, and by whom, as far as the change feed says so. */
function GoneUser({ realm, user, problem }: GoneUserProps) {
  const changes = useChanges(realm, user);
  const { answer, isWaiting } = changes.fetched;
  const end = answer?.items.find((change) => change.record_id === user && ENDS.has(change.what));
  if (!end) return isWaiting ? <Loading /> : <ProblemNote problem={problem} />;
  return (
    <>
      <EmptyState icon="user" title="This user no longer exists">
        <p role="status">
          {capitalized(end.what)} on <Timestamp at={end.at} /> by{' '}
          <UntrustedText text={actorName(changes.clients, end.client_id)} />.
        </p>
      </EmptyState>
      <History changes={changes} />
    </>
  );
}

const ENDS: ReadonlySet<string> = new Set(['deleted', 'erased']);

interface RemovedLinkProps {
  readonly link: Link;
  readonly onAction: (action: Action) => void;
}

/** Offers to create a removed link again. A password is lost with its link: the form requires a new one. */
function RemovedLink({ link, onAction }: RemovedLinkProps) {
  const state = useObservable(session);
  const { description, record } = link;
  const links = LINK_KINDS.find((kind) => kind.description === description);
  if (!links || !hasScope(state, `${description.scope}:write`)) return null;
  return (
    <div class="note" role="status">
      <Icon name="history" />
      <div class="stack-tight">
        <p>
          The {description.words[0]} <UntrustedText text={nameOf(link)} isIdentifier /> was removed.
        </p>
        <button type="button" class="button" onClick={() => onAction({ kind: 'add', links, from: record })}>
          Undo
        </button>
      </div>
    </div>
  );
}

function UserActions({ user, onAction }: Pick<UserViewProps, 'onAction'> & { readonly user: ApiRecord }) {
  const state = useObservable(session);
  const isWriter = hasScope(state, `${RESOURCES.users.scope}:write`);
  const button = (kind: UserAction, icon: IconName, verb: string) => (
    <button type="button" class="button" onClick={() => onAction({ kind })}>
      <Icon name={icon} /> {verb}
    </button>
  );
  // Links that the session cannot see would be deleted with the user.
  const isMerger = LINK_KINDS.every(({ description: { scope } }) =>
    ['read', 'write'].every((verb) => hasScope(state, `${scope}:${verb}`)),
  );
  return (
    <>
      {isWriter && (
        <>
          {button('edit', 'edit', 'Edit')}
          {user.enabled === false
            ? button('enable', 'done', 'Enable')
            : button('disable', 'close', 'Disable')}
          {button('signOut', 'signOut', 'Sign out everywhere')}
          {isMerger && button('merge', 'link', 'Merge into…')}
          {button('delete', 'remove', 'Delete')}
        </>
      )}
      {hasScope(state, 'admin') && (
        <button type="button" class="button button-risky" onClick={() => onAction({ kind: 'erase' })}>
          Erase permanently
        </button>
      )}
    </>
  );
}

interface UserViewProps {
  readonly realm: string;
  readonly loaded: UserWithLinks;
  readonly isWaiting: boolean;
  /** Loads more links. */
  readonly onMore: () => void;
  readonly onAction: (action: Action) => void;
}

function UserView({ realm, loaded, isWaiting, onMore, onAction }: UserViewProps) {
  const { user, links, forbidden, hasMore } = loaded;
  const changes = useChanges(realm, user.record.id, user.etag);
  const state = useObservable(session);
  return (
    <>
      <section class="card stack-tight" aria-label="How this user signs in">
        <div class="card-head">
          <h2>{user.record.enabled === false ? 'Disabled: cannot sign in' : 'How this user signs in'}</h2>
          <div class="actions">
            {LINK_KINDS.filter(({ description }) => hasScope(state, `${description.scope}:write`)).map(
              (kind) => (
                <button
                  key={kind.name}
                  type="button"
                  class="button"
                  onClick={() => onAction({ kind: 'add', links: kind })}
                >
                  <Icon name="add" /> Add {kind.description.words[0]}
                </button>
              ),
            )}
          </div>
        </div>
        {user.record.enabled !== false && <p>The user is enabled.</p>}
        {links.length > 0 && (
          <LinksTable
            realm={realm}
            links={links}
            originOf={(link) => linkOrigin(link, changes)}
            onAction={onAction}
          />
        )}
        {links.length === 0 && forbidden.length < LINK_KINDS.length && (
          <EmptyState icon="link" title="No links or usernames yet">
            <p>Link the user to a subject at an issuer, or add a username with a password.</p>
          </EmptyState>
        )}
        {hasMore && (
          <div class="note note-warn">
            <Icon name="warning" />
            <div class="stack-tight">
              <p>Showing the first {links.length} links and usernames of this user.</p>
              <button type="button" class="button" disabled={isWaiting} onClick={onMore}>
                Show more
              </button>
            </div>
          </div>
        )}
        {forbidden.length > 0 && (
          <p class="faint small">
            Not visible to this session: {forbidden.map(({ words }) => words[1]).join(', ')}.
          </p>
        )}
        {hasScope(state, STATE_SCOPE) && <SignInState realm={realm} loaded={loaded} />}
      </section>
      <section class="card" aria-label="Profile">
        <div class="card-head">
          <h2>Profile</h2>
        </div>
        <RecordFacts description={RESOURCES.users} record={user.record} />
      </section>
      <History changes={changes} restoreOf={(entry) => restoreOf(entry, loaded, state, onAction)} />
    </>
  );
}

/** Restores members of the user and its links: usernames and passwords stay as they are. */
function restoreOf(
  { kind, what, record_id: id, before, withheld }: Entry,
  { user, links }: UserWithLinks,
  state: SessionState,
  onAction: (action: Action) => void,
) {
  const [oidc] = LINK_KINDS;
  const description = [RESOURCES.users, oidc.description].find(({ name }) => name === kind);
  if (!description || withheld || !hasScope(state, `${description.scope}:write`)) return undefined;
  const link = links.find(({ record }) => record.id === id);
  const isThere = link !== undefined || id === user.record.id;
  const button = (action: Action) => (
    <button type="button" class="button" onClick={() => onAction(action)}>
      Restore
    </button>
  );
  if (what === 'updated' && isThere && fieldsOf(description, 'update').some(({ name }) => name in before))
    return button({ kind: 'restore', link, filled: before });
  if (what === 'deleted' && !isThere && oidc.name in before)
    return button({ kind: 'add', links: oidc, from: before });
  return undefined;
}
