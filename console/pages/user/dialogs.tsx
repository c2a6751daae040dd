import { callApi } from '../../api/call_api.ts';
import { type ApiRecord, RESOURCES, recordPages } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { CreateDialog, DeleteDialog, EditRecordDialog } from '../../form/record_dialogs.tsx';
import type { Values } from '../../form/record_form.tsx';
import { ActionError, useAction } from '../../form/use_action.tsx';
import { href, navigate } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { plainText } from '../../parts/confusables.ts';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { ChangeList } from './history.tsx';
import { type Link, type LinkKind, nameOf, type UserWithLinks } from './load_user.ts';

/** The actions on the page of a user. */
export type Action =
  | { readonly kind: 'edit' | 'delete' | 'erase' }
  | { readonly kind: 'add'; readonly links: LinkKind }
  | { readonly kind: 'editLink' | 'removeLink' | 'history'; readonly link: Link };

interface UserDialogProps {
  readonly realm: string;
  readonly loaded: UserWithLinks;
  readonly action: Action;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/** The dialog of an action. */
export function UserDialog({ realm, loaded, action, onChanged, onClose }: UserDialogProps) {
  const user = loaded.user.record.id;
  const done = () => {
    onChanged();
    onClose();
  };
  switch (action.kind) {
    case 'edit':
      return (
        <EditRecordDialog
          description={RESOURCES.users}
          recordKey={[realm, user]}
          onDone={done}
          onClose={onClose}
        />
      );
    case 'add':
      return <AddLinkDialog realm={realm} user={user} kind={action.links} onDone={done} onClose={onClose} />;
    case 'editLink':
      return (
        <EditRecordDialog
          description={action.link.description}
          recordKey={[realm, user, action.link.record.id]}
          onDone={done}
          onClose={done}
        />
      );
    case 'history':
      return (
        <Dialog title="History of this link" onClose={onClose}>
          <ChangeList realm={realm} user={user} record={action.link.record.id} />
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
          onRemoved={done}
          onClose={done}
        >
          {(now) => (
            <p>
              From now on the user cannot sign in as{' '}
              <UntrustedText text={nameOf({ ...action.link, record: now })} />.
            </p>
          )}
        </DeleteDialog>
      );
    }
    case 'delete':
      return <DeleteUserDialog realm={realm} loaded={loaded} onClose={onClose} />;
    default:
      return <EraseUserDialog realm={realm} loaded={loaded} onClose={onClose} />;
  }
}

interface UserDialogTarget {
  readonly realm: string;
  readonly loaded: UserWithLinks;
  readonly onClose: () => void;
}

function DeleteUserDialog({ realm, loaded: { user }, onClose }: UserDialogTarget) {
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
        <p>
          <strong>
            <UntrustedText text={String(name)} />
          </strong>{' '}
          and all of its links are deleted. The audit log keeps the old values: erase the user to remove those
          too.
        </p>
      )}
    </DeleteDialog>
  );
}

/** Erases all personal data of the user. */
function EraseUserDialog({ realm, loaded, onClose }: UserDialogTarget) {
  const { record } = loaded.user;
  const { run, isBusy, problem } = useAction(() => {
    announce('The user was erased.');
    navigate(href('realms', realm, 'users'));
  });
  return (
    <Confirmation
      title="Erase this user permanently?"
      confirmation={confirmationWord('erase', record.id)}
      verb="Erase permanently"
      isBusy={isBusy}
      onConfirm={() => run(() => erase(realm, record.id))}
      onClose={onClose}
    >
      <p>
        <strong>
          <UntrustedText text={String(record.name)} />
        </strong>{' '}
        and all of its links are deleted, and so is all personal data in the audit log. This cannot be undone.
      </p>
      <ActionError problem={problem} />
    </Confirmation>
  );
}

async function erase(realm: string, user: string): Promise<void> {
  const data = { realm_id: realm, user_id: user };
  await callApi({ method: 'POST', path: 'admin/v1/erasures', body: { data }, scope: 'admin' });
}

interface AddLinkProps {
  readonly realm: string;
  readonly user: string;
  readonly kind: LinkKind;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Adds a link; some members are copied from its profile. */
function AddLinkDialog({ realm, user, kind, onDone, onClose }: AddLinkProps) {
  const { description, profiles, reference } = kind;
  const fetched = useFetch((signal) => recordPages(profiles, [realm], 'created_at')('', signal), []);
  if (!fetched.answer) {
    return (
      <Dialog title={`New ${resourceLabel(description.name).one}`} onClose={onClose}>
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
      parentKey={[realm, user]}
      initial={withProfileValues(kind, items, initial)}
      options={{ [reference]: next === undefined ? options : undefined }}
      follow={(values, changed) =>
        (reference in changed ? withProfileValues(kind, items, values) : values) as Values
      }
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** Copies members of the selected profile into the values. */
function withProfileValues(
  { description, reference }: LinkKind,
  profiles: readonly ApiRecord[],
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const profile = profiles.find(({ id }) => id === values[reference]);
  const same = description.fields.flatMap(({ name, sameAs }) =>
    profile && sameAs ? [[name, profile[sameAs.member]] as const] : [],
  );
  return { ...values, ...Object.fromEntries(same) };
}
