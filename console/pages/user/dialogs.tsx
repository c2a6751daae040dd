import { callApi } from '../../api/call_api.ts';
import { type ApiRecord, pathOf, RESOURCES, recordPages, updateRecord } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { CreateDialog, DeleteDialog, EditRecordDialog } from '../../form/record_dialogs.tsx';
import { ActionDialog } from '../../form/use_action.tsx';
import { href, navigate } from '../../layout/router.ts';
import { plainText } from '../../parts/confusables.ts';
import { confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { LinkHistory } from './history.tsx';
import { type Link, type LinkKind, nameOf, providerName, type UserWithLinks } from './load_user.ts';
import { MoveDialog } from './move_dialog.tsx';

/** The actions on a user that its page has buttons for. */
export type UserAction = 'edit' | 'merge' | 'delete' | 'erase' | keyof typeof ACCESS;

/** The actions on the page of a user. */
export type Action =
  | { readonly kind: UserAction }
  /** `from`: a removed link to create again. */
  | { readonly kind: 'add'; readonly links: LinkKind; readonly from?: Partial<ApiRecord> }
  /** `filled`: the values to restore. */
  | { readonly kind: 'restore'; readonly link: Link | undefined; readonly filled: Partial<ApiRecord> }
  | { readonly kind: 'editLink' | 'moveLink' | 'removeLink' | 'history'; readonly link: Link };

interface UserDialogProps {
  readonly realm: string;
  readonly loaded: UserWithLinks;
  readonly action: Action;
  readonly onChanged: () => void;
  /** A link was removed: it can be created again. */
  readonly onRemoved: (link: Link) => void;
  readonly onClose: () => void;
}

/** The dialog of an action. */
export function UserDialog({ realm, loaded, action, onChanged, onRemoved, onClose }: UserDialogProps) {
  const user = loaded.user.record.id;
  const target = { realm, loaded, onClose };
  const done = () => {
    onChanged();
    onClose();
  };
  switch (action.kind) {
    case 'edit':
    case 'restore':
    case 'editLink': {
      const link = 'link' in action ? action.link : undefined;
      return (
        <EditRecordDialog
          description={link?.description ?? RESOURCES.users}
          recordKey={link ? [realm, user, link.record.id] : [realm, user]}
          filled={'filled' in action ? action.filled : undefined}
          onDone={done}
          onClose={done}
        />
      );
    }
    case 'add':
      return (
        <AddLinkDialog
          userKey={[realm, user]}
          kind={action.links}
          from={action.from}
          onDone={done}
          onClose={onClose}
        />
      );
    case 'history':
      return (
        <Dialog title={`History of this ${action.link.description.words[0]}`} onClose={onClose}>
          <LinkHistory realm={realm} user={user} link={action.link.record.id} />
        </Dialog>
      );
    case 'removeLink': {
      const { description, record } = action.link;
      return (
        <DeleteDialog
          description={description}
          recordKey={[realm, user, record.id]}
          shown={record}
          verb="Remove"
          onRemoved={() => onRemoved(action.link)}
          onClose={done}
        >
          {(now) => (
            <p>
              From now on the user cannot sign in as{' '}
              <UntrustedText text={nameOf({ ...action.link, record: now })} isIdentifier /> through{' '}
              <UntrustedText text={providerName(action.link)} />
              {isOnlyLink(loaded) && ', the only way to sign in that this user has'}.
            </p>
          )}
        </DeleteDialog>
      );
    }
    case 'moveLink':
    case 'merge': {
      const link = action.kind === 'moveLink' ? action.link : undefined;
      return <MoveDialog {...{ realm, user, link }} onClose={done} />;
    }
    case 'delete':
      return <DeleteUserDialog {...target} />;
    case 'erase':
      return <EraseUserDialog {...target} />;
    default:
      return <AccessDialog {...target} kind={action.kind} onDone={onChanged} />;
  }
}

function isOnlyLink({ links, hasMore, forbidden }: UserWithLinks): boolean {
  return links.length === 1 && !hasMore && forbidden.length === 0;
}

/** The providers and password profiles through which a user without its links and usernames cannot sign in. */
function LostProviders({ links, hasMore }: UserWithLinks) {
  if (links.length === 0) return null;
  return (
    <p>
      The user can no longer sign in through{' '}
      {[...Map.groupBy(links, ({ profile }) => profile.id)].map(([id, [first, ...others]], index) => (
        <span key={id}>
          {index > 0 && ', '}
          {first && <UntrustedText text={providerName(first)} />}
          {others.length > 0 && ` (${others.length + 1} ${first?.description.words[1]})`}
        </span>
      ))}
      {hasMore && ' and others'}.
    </p>
  );
}

interface UserDialogTarget {
  readonly realm: string;
  readonly loaded: UserWithLinks;
  readonly onClose: () => void;
}

function DeleteUserDialog({ realm, loaded, onClose }: UserDialogTarget) {
  const { user } = loaded;
  return (
    <DeleteDialog
      description={RESOURCES.users}
      recordKey={[realm, user.record.id]}
      shown={user.record}
      verb="Delete"
      confirmation={confirmationWord('delete', user.record.id)}
      onRemoved={() => navigate(href('realms', realm, 'users'))}
      onClose={onClose}
    >
      {({ name }) => (
        <>
          <p>
            <strong>
              <UntrustedText text={String(name)} />
            </strong>{' '}
            and all of its links and usernames are deleted. The audit log keeps the old values: erase the user
            to remove those too.
          </p>
          <LostProviders {...loaded} />
        </>
      )}
    </DeleteDialog>
  );
}

/** The actions that let a user in or keep it out. */
const ACCESS = {
  disable: {
    title: 'Disable this user?',
    verb: 'Disable',
    effect: 'cannot sign in until it is enabled again, and all its sessions end.',
    message: 'The user was disabled.',
  },
  enable: {
    title: 'Enable this user?',
    verb: 'Enable',
    effect: 'can sign in again. Earlier sessions stay ended.',
    message: 'The user was enabled.',
  },
  signOut: {
    title: 'Sign this user out everywhere?',
    verb: 'Sign out everywhere',
    effect: 'is signed out on every device, and keeps its password.',
    message: 'The user was signed out everywhere.',
  },
} as const;

interface AccessDialogProps extends UserDialogTarget {
  readonly kind: keyof typeof ACCESS;
  readonly onDone: () => void;
}

/** Without a check of the version: another change does not matter. */
function AccessDialog({ realm, loaded, kind, onDone, onClose }: AccessDialogProps) {
  const { effect, ...words } = ACCESS[kind];
  const { record } = loaded.user;
  const key = [realm, record.id];
  const send = async () => {
    const path = `${pathOf(RESOURCES.users, key)}/sign-out`;
    if (kind === 'signOut') await callApi({ method: 'POST', path, scope: `${RESOURCES.users.scope}:write` });
    else await updateRecord(RESOURCES.users, key, { enabled: kind === 'enable' }, undefined);
  };
  return (
    <ActionDialog {...words} isDanger={kind !== 'enable'} action={send} onDone={onDone} onClose={onClose}>
      <p>
        <UntrustedText text={String(record.name)} /> {effect}
      </p>
    </ActionDialog>
  );
}

/** Erases all personal data of the user. */
function EraseUserDialog({ realm, loaded, onClose }: UserDialogTarget) {
  const { record } = loaded.user;
  const erase = async () => {
    const data = { realm_id: realm, user_id: record.id };
    await callApi({ method: 'POST', path: 'admin/v1/erasures', body: { data }, scope: 'admin' });
  };
  return (
    <ActionDialog
      title="Erase this user permanently?"
      confirmation={confirmationWord('erase', record.id)}
      verb="Erase permanently"
      action={erase}
      message="The user was erased."
      onDone={() => navigate(href('realms', realm, 'users'))}
      onClose={onClose}
    >
      <p>
        <strong>
          <UntrustedText text={String(record.name)} />
        </strong>{' '}
        and all of its links and usernames are deleted, and so is all personal data in the audit log. This
        cannot be undone.
      </p>
      <LostProviders {...loaded} />
    </ActionDialog>
  );
}

interface AddLinkProps {
  readonly userKey: readonly [realm: string, user: string];
  readonly kind: LinkKind;
  readonly from: Partial<ApiRecord> | undefined;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Adds a link; some members are copied from its profile. */
function AddLinkDialog({ userKey, kind, from, onDone, onClose }: AddLinkProps) {
  const { description, profiles, reference } = kind;
  const [realm] = userKey;
  const fetched = useFetch((signal) => recordPages(profiles, [realm], 'created_at')('', signal), []);
  if (!fetched.answer) {
    return (
      <Dialog title={`New ${description.words[0]}`} onClose={onClose}>
        <Loaded fetched={fetched}>{() => null}</Loaded>
      </Dialog>
    );
  }
  const { items, next } = fetched.answer;
  const options = items.map(({ id, name }) => ({ id, label: plainText(String(name)) }));
  const initial = { [reference]: items.length === 1 ? items[0]?.id : undefined };
  return (
    <CreateDialog
      description={description}
      parentKey={userKey}
      initial={from ?? { ...initial, ...copiedValues(kind, items, initial) }}
      options={{ [reference]: next === undefined ? options : undefined }}
      hintsFor={(values) => differingHints(values, copiedValues(kind, items, values))}
      follow={(values, changed, typed) => {
        if (!(reference in changed)) return values;
        const copied = Object.entries(copiedValues(kind, items, values));
        return { ...values, ...Object.fromEntries(copied.filter(([member]) => !typed.has(member))) };
      }}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** The members that a link has in common with the selected profile, such as the issuer. */
function copiedValues(
  { description, reference }: LinkKind,
  profiles: readonly ApiRecord[],
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const profile = profiles.find(({ id }) => id === values[reference]);
  const same = description.fields.flatMap(({ name, sameAs }) =>
    profile && sameAs ? [[name, String(profile[sameAs.member])] as const] : [],
  );
  return Object.fromEntries(same);
}

/** What the user has typed stays: a hint says what the provider has. */
function differingHints(
  values: Readonly<Record<string, unknown>>,
  copied: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const differing = Object.entries(copied).filter(([member, value]) => values[member] !== value);
  return Object.fromEntries(
    differing.map(([member, value]) => [member, `The selected provider has ${plainText(value)}.`]),
  );
}
