import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ADMIN, type Managed, type WithSecret } from '../../api/admin.ts';
import type { WithEtag } from '../../api/records.ts';
import type { Fetched } from '../../api/use_fetch.ts';
import { PageHead } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact, Times } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { capitalized } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { hasScope, session } from '../../session/session.ts';
import { EditManagedDialog, ManagedActionDialog, SecretDialog } from './dialogs.tsx';
import type { Action, Kind } from './kind.ts';

interface ManagedPageProps<Input, Created, Read> {
  readonly kind: Kind<Input, Created>;
  readonly fetched: Fetched<Read>;
  /** Facts of its kind. */
  readonly facts: (answer: Read) => ComponentChildren;
  /** Content below the facts. */
  readonly rest?: (answer: Read) => ComponentChildren;
}

/** The page of a client or webhook target. */
export function ManagedPage<Input, Created extends Input, Read extends WithEtag<Managed & Input>>(
  props: ManagedPageProps<Input, Created, Read>,
) {
  const { kind, fetched, facts, rest } = props;
  const { what, words } = kind;
  const { answer } = fetched;
  return (
    <>
      <PageHead
        title={answer?.record.name ?? capitalized(what)}
        breadcrumbs={[kind.home]}
        actions={answer && <ManagedActions kind={kind} loaded={answer} onChanged={fetched.reload} />}
      />
      <Loaded fetched={fetched}>
        {(known) => {
          const { is_disabled: isDisabled, previous_secret_expires_at: previous, meta } = known.record;
          return (
            <>
              <section class="card" aria-label={`This ${what}`}>
                <dl class="facts">
                  <Fact label="State">
                    <span class={isDisabled ? 'badge badge-warn' : 'badge badge-good'}>
                      {isDisabled ? words.isDisabled : words.isEnabled}
                    </span>
                  </Fact>
                  {facts(known)}
                  {previous !== null && (
                    <Fact label="Old secret">
                      {words.previousSecret} <Timestamp at={previous} />
                    </Fact>
                  )}
                  <Times created={meta.created_at} changed={meta.updated_at} />
                </dl>
              </section>
              {rest?.(known)}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

interface RealmsFactProps {
  readonly label?: string;
  readonly realms: '*' | readonly string[];
}

/** The realms of a client or target. */
export function RealmsFact({ label = 'Realms', realms }: RealmsFactProps) {
  if (realms === '*') return <Fact label={label}>all</Fact>;
  return (
    <Fact label={label}>
      <ul>
        {realms.map((id) => (
          <li key={id}>
            <a href={href('realms', id)}>
              <RealmName id={id} />
            </a>
          </li>
        ))}
      </ul>
    </Fact>
  );
}

interface CreateManagedButtonProps<Input, Created> {
  readonly kind: Pick<Kind<Input, Created>, 'what' | 'collection' | 'blank' | 'Form'>;
  readonly onCreated: () => void;
}

/** Creates one and shows its secret once; hidden without the scope. */
export function CreateManagedButton<Input, Created>({
  kind,
  onCreated,
}: CreateManagedButtonProps<Input, Created>) {
  const { what, collection, blank, Form } = kind;
  const state = useObservable(session);
  const [isCreating, setCreating] = useState(false);
  const [issued, setIssued] = useState<WithSecret>();
  if (!hasScope(state, ADMIN)) return null;
  const create = async (input: Created) => {
    setIssued(await collection.create(input));
    setCreating(false);
    onCreated();
  };
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setCreating(true)}>
        <Icon name="add" /> New {what}
      </button>
      {isCreating && (
        <Dialog title={`New ${what}`} onClose={() => setCreating(false)}>
          <Form initial={blank} verb="create" save={create} onCancel={() => setCreating(false)} />
        </Dialog>
      )}
      {issued && <SecretDialog what={what} issued={issued} onClose={() => setIssued(undefined)} />}
    </>
  );
}

interface ManagedActionsProps<Input, Created> {
  readonly kind: Kind<Input, Created>;
  readonly loaded: WithEtag<Managed & Input>;
  readonly onChanged: () => void;
}

/** The buttons for all actions; hidden without the scope. */
function ManagedActions<Input, Created extends Input>(props: ManagedActionsProps<Input, Created>) {
  const state = useObservable(session);
  const [action, setAction] = useState<Action | 'edit'>();
  if (!hasScope(state, ADMIN)) return null;
  const isDisabled = props.loaded.record.is_disabled;
  const close = () => setAction(undefined);
  return (
    <>
      <button type="button" class="button" onClick={() => setAction('edit')}>
        <Icon name="edit" /> Edit
      </button>
      <button type="button" class="button" onClick={() => setAction('rotate')}>
        <Icon name="history" /> New secret
      </button>
      <button type="button" class="button" onClick={() => setAction(isDisabled ? 'enable' : 'disable')}>
        <Icon name={isDisabled ? 'done' : 'close'} /> {isDisabled ? 'Enable' : 'Disable'}
      </button>
      <button type="button" class="button" onClick={() => setAction('delete')}>
        <Icon name="remove" /> Delete
      </button>
      {action === 'edit' && <EditManagedDialog {...props} onClose={close} />}
      {action !== undefined && action !== 'edit' && (
        <ManagedActionDialog {...props} action={action} onClose={close} />
      )}
    </>
  );
}
