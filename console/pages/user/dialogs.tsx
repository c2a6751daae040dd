import { ask } from '../../api/call_api.ts';
import { pagesOf, RESOURCES, type Shown } from '../../api/records.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { CreateDialog, EditDialog, Removal } from '../../form/record_dialogs.tsx';
import type { Values } from '../../form/record_form.tsx';
import { Told, useAct } from '../../form/use_action.tsx';
import { go, href } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { plainText } from '../../parts/confusables.ts';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { Answered } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import { ChangeList } from './history.tsx';
import { type Link, type LinkKind, nameOf, type Whole } from './load_user.ts';

/** What is about to be done on the page of a user. */
export type Act =
  | { readonly kind: 'edit' | 'delete' | 'erase' }
  | { readonly kind: 'add'; readonly links: LinkKind }
  | { readonly kind: 'editLink' | 'removeLink' | 'history'; readonly link: Link };

interface ActsProps {
  readonly realm: string;
  readonly whole: Whole;
  readonly act: Act;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/** The dialog of an act. */
export function Acts({ realm, whole, act, onChanged, onClose }: ActsProps) {
  const user = whole.user.record.id;
  const done = () => {
    onChanged();
    onClose();
  };
  switch (act.kind) {
    case 'edit':
      return (
        <EditDialog description={RESOURCES.users} recordKey={[realm, user]} onDone={done} onClose={onClose} />
      );
    case 'add':
      return <AddLinkDialog realm={realm} user={user} kind={act.links} onDone={done} onClose={onClose} />;
    case 'editLink':
      return (
        <EditDialog
          description={act.link.description}
          recordKey={[realm, user, act.link.record.id]}
          onDone={done}
          onClose={done}
        />
      );
    case 'history':
      return (
        <Dialog title="History of this link" onClose={onClose}>
          <ChangeList realm={realm} user={user} record={act.link.record.id} />
        </Dialog>
      );
    case 'removeLink': {
      const { description, record } = act.link;
      return (
        <Removal
          description={description}
          recordKey={[realm, user, record.id]}
          shown={record}
          verb="Remove"
          onRemoved={done}
          onClose={done}
        >
          {(now) => (
            <p>
              From now on the user cannot sign in as <Said text={nameOf({ ...act.link, record: now })} />.
            </p>
          )}
        </Removal>
      );
    }
    case 'delete':
      return <Deletion realm={realm} whole={whole} onClose={onClose} />;
    default:
      return <Erasure realm={realm} whole={whole} onClose={onClose} />;
  }
}

interface LeaveProps {
  readonly realm: string;
  readonly whole: Whole;
  readonly onClose: () => void;
}

function Deletion({ realm, whole: { user }, onClose }: LeaveProps) {
  return (
    <Removal
      description={RESOURCES.users}
      recordKey={[realm, user.record.id]}
      shown={user.record}
      verb="Delete"
      word={confirmationWord('delete', user.record.id)}
      onRemoved={() => go(href('realms', realm, 'users'))}
      onClose={onClose}
    >
      {({ name }) => (
        <p>
          <strong>
            <Said text={String(name)} />
          </strong>{' '}
          and all of its links are deleted. The audit log keeps the old values: erase the user to remove those
          too.
        </p>
      )}
    </Removal>
  );
}

/** Erases all that was ever kept of the person. */
function Erasure({ realm, whole, onClose }: LeaveProps) {
  const { record } = whole.user;
  const { run, isBusy, problem } = useAct(() => {
    announce('The user was erased.');
    go(href('realms', realm, 'users'));
  });
  return (
    <Confirmation
      title="Erase this user permanently?"
      word={confirmationWord('erase', record.id)}
      verb="Erase permanently"
      isBusy={isBusy}
      onConfirm={() => run(() => erase(realm, record.id))}
      onClose={onClose}
    >
      <p>
        <strong>
          <Said text={String(record.name)} />
        </strong>{' '}
        and all of its links are deleted, and so are all personal data in the audit log. This cannot be
        undone.
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}

async function erase(realm: string, user: string): Promise<void> {
  const data = { realm_id: realm, user_id: user };
  await ask({ method: 'POST', path: 'admin/v1/erasures', body: { data }, scope: 'admin' });
}

interface AddLinkProps {
  readonly realm: string;
  readonly user: string;
  readonly kind: LinkKind;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Adds a way to sign in. Of its profile it takes over what the two should have in common. */
function AddLinkDialog({ realm, user, kind, onDone, onClose }: AddLinkProps) {
  const { description, profiles, by } = kind;
  const asked = useAsked((signal) => pagesOf(profiles, [realm], 'created_at')('', signal), []);
  if (!asked.answer) {
    return (
      <Dialog title={`New ${nounOf(description.name).one}`} onClose={onClose}>
        <Answered asked={asked}>{() => null}</Answered>
      </Dialog>
    );
  }
  const { items, next } = asked.answer;
  const options = items.map(({ id, name }) => ({ id, label: plainText(String(name)) }));
  const begin = { [by]: items.length === 1 ? items[0]?.id : undefined };
  return (
    <CreateDialog
      description={description}
      above={[realm, user]}
      begin={taken(kind, items, begin)}
      options={{ [by]: next === undefined ? options : undefined }}
      follow={(name, values) => (name === by ? taken(kind, items, values) : values) as Values}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** The same with what the profile that is named says of it. */
function taken(
  { description, by }: LinkKind,
  profiles: readonly Shown[],
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const profile = profiles.find(({ id }) => id === values[by]);
  const same = description.fields.flatMap(({ name, sameAs }) =>
    profile && sameAs ? [[name, profile[sameAs.member]] as const] : [],
  );
  return { ...values, ...Object.fromEntries(same) };
}
