import { ask } from '../../api/caller.ts';
import { RESOURCES, removeRecord } from '../../api/records.ts';
import { Told, useAct } from '../../form/acting.tsx';
import { EditDialog } from '../../form/editing.tsx';
import { go, href } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, confirmationWord, Dialog } from '../../parts/dialog.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import { AddLinkDialog } from './add_link.tsx';
import { ChangeList } from './history.tsx';
import { type Link, type LinkKind, nameOf, type Whole } from './reading.ts';

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
          onClose={() => {
            onChanged();
            onClose();
          }}
        />
      );
    case 'history':
      return (
        <Dialog title="History of this link" onClose={onClose}>
          <ChangeList realm={realm} user={user} record={act.link.record.id} />
        </Dialog>
      );
    case 'removeLink':
      return <RemoveLink realm={realm} user={user} link={act.link} onDone={done} onClose={onClose} />;
    default:
      return <Leave realm={realm} whole={whole} isForGood={act.kind === 'erase'} onClose={onClose} />;
  }
}

interface RemoveLinkProps {
  readonly realm: string;
  readonly user: string;
  readonly link: Link;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function RemoveLink({ realm, user, link, onDone, onClose }: RemoveLinkProps) {
  const { description, record } = link;
  const { one } = nounOf(description.name);
  const { run, isBusy, problem } = useAct(() => {
    announce(`The ${one} is removed.`);
    onDone();
  });
  return (
    <Confirmation
      title={`Remove this ${one}?`}
      verb="Remove"
      isBusy={isBusy}
      onConfirm={() => run(() => removeRecord(description, [realm, user, record.id], undefined))}
      onClose={onClose}
    >
      <p>
        The user cannot sign in as <Said text={nameOf(link)} /> any more, from this moment on.
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}

interface LeaveProps {
  readonly realm: string;
  readonly whole: Whole;
  readonly isForGood: boolean;
  readonly onClose: () => void;
}

/** Deletes a user, or erases all that was ever kept of the person. */
function Leave({ realm, whole, isForGood, onClose }: LeaveProps) {
  const { record } = whole.user;
  const { run, isBusy, problem } = useAct(() => {
    announce(isForGood ? 'The user is erased.' : 'The user is deleted.');
    go(href('realms', realm, 'users'));
  });
  return (
    <Confirmation
      title={isForGood ? 'Erase this user for good?' : 'Delete this user?'}
      word={confirmationWord(isForGood ? 'erase' : 'delete', record.id)}
      verb={isForGood ? 'Erase for good' : 'Delete'}
      isBusy={isBusy}
      onConfirm={() =>
        run(() =>
          isForGood
            ? erase(realm, record.id)
            : removeRecord(RESOURCES.users, [realm, record.id], whole.user.etag),
        )
      }
      onClose={onClose}
    >
      <p>
        <strong>
          <Said text={String(record.name)} />
        </strong>{' '}
        and all links of theirs go.{' '}
        {isForGood
          ? 'So does everything that the log could tell of the person. Nobody can bring it back.'
          : 'The log keeps what was there: to remove that too, the user has to be erased.'}
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}

async function erase(realm: string, user: string): Promise<void> {
  const data = { realm_id: realm, user_id: user };
  await ask({ method: 'POST', path: 'admin/v1/erasures', body: { data }, scope: 'admin' });
}
