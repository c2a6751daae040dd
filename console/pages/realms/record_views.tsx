import type { ComponentChildren, ComponentProps } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import {
  type ApiRecord,
  type Key,
  type LinkedRecord,
  type Order,
  readRecord,
  recordPages,
  type WithEtag,
} from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import {
  CreateDialog,
  canCreateOrDelete,
  DeleteDialog,
  EditRecordDialog,
} from '../../form/record_dialogs.tsx';
import { PageHead } from '../../layout/page.tsx';
import { href, navigate } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { confirmationWord } from '../../parts/dialog.tsx';
import { RecordFacts } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PagedList } from '../../parts/long_list.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { capitalized, resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';

/** Breadcrumbs of pages within a realm. */
export function realmBreadcrumbs(realm: string) {
  return [
    { label: 'Realms', href: href('realms') },
    { label: <RealmName id={realm}>Realm</RealmName>, href: href('realms', realm) },
  ];
}

interface RecordListProps {
  readonly description: Description;
  readonly parentKey: Key;
  readonly hrefOf: (record: ApiRecord) => string;
  /** Text next to the name. */
  readonly more: (record: ApiRecord) => string;
  readonly empty: ComponentChildren;
}

/** The records of a collection, newest or oldest first. */
export function RecordList({ description, parentKey, hrefOf, more, empty }: RecordListProps) {
  const [order, setOrder] = useState<Order>('-created_at');
  const read = useMemo(
    () => recordPages(description, parentKey, order),
    [description, parentKey.join('/'), order],
  );
  const { many, icon } = resourceLabel(description.name);
  const other = order === 'created_at' ? '-created_at' : 'created_at';
  return (
    <div class="stack-tight">
      <div class="list-tools">
        <button type="button" class="text-button" onClick={() => setOrder(other)}>
          <Icon name="order" /> {order === 'created_at' ? 'Oldest first' : 'Newest first'}
        </button>
      </div>
      <PagedList
        label={many}
        read={read}
        empty={empty}
        row={(record) => (
          <a class="row" href={hrefOf(record)}>
            <Icon name={icon} />
            <span class="row-main">
              <span>
                <UntrustedText text={String(record.name)} />
              </span>
              <span class="faint">
                <UntrustedText text={more(record)} />
              </span>
            </span>
            <span class="row-side faint small">
              <Timestamp at={record.created_at} />
            </span>
          </a>
        )}
      />
    </div>
  );
}

type CreateButtonProps = Omit<ComponentProps<typeof CreateDialog>, 'onClose'>;

/** Creates a record; hidden without the scope. */
export function CreateButton(props: CreateButtonProps) {
  const { description, onDone } = props;
  const [isOpen, setOpen] = useState(false);
  const state = useObservable(session);
  if (!canCreateOrDelete(state, description)) return null;
  const [one] = description.words;
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setOpen(true)}>
        <Icon name="add" /> New {one}
      </button>
      {isOpen && (
        <CreateDialog
          {...props}
          onDone={(created) => {
            setOpen(false);
            onDone(created);
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

interface RecordPageProps {
  readonly description: Description;
  readonly recordKey: Key;
  readonly breadcrumbs: ReturnType<typeof realmBreadcrumbs>;
  /** What else is deleted. */
  readonly consequence: string;
  /** Page to open after deletion. */
  readonly after: string;
  /** Further buttons. */
  readonly actions?: ComponentChildren;
  /** Further facts, shown first. */
  readonly facts?: (loaded: LinkedRecord) => ComponentChildren;
}

/** The head and the facts of a realm, a provider or a password profile. */
export function RecordPage({ breadcrumbs, actions, facts, ...props }: RecordPageProps) {
  const { description, recordKey } = props;
  const fetched = useFetch((signal) => readRecord(description, recordKey, signal), recordKey);
  const { answer, reload } = fetched;
  const [one] = description.words;
  return (
    <>
      <PageHead
        title={String(answer?.record.name ?? capitalized(one))}
        breadcrumbs={breadcrumbs}
        actions={
          <>
            {actions}
            {answer && <RecordActions {...props} loaded={answer} onChanged={reload} />}
          </>
        }
      />
      <Loaded fetched={fetched}>
        {(loaded) => (
          <section class="card" aria-label={`This ${one}`}>
            <RecordFacts description={description} record={loaded.record}>
              {facts?.(loaded)}
            </RecordFacts>
          </section>
        )}
      </Loaded>
    </>
  );
}

interface RecordActionsProps
  extends Pick<RecordPageProps, 'description' | 'recordKey' | 'consequence' | 'after'> {
  readonly loaded: WithEtag;
  readonly onChanged: () => void;
}

/** Edits or deletes a realm, a provider or a password profile; hidden without the scope. */
function RecordActions(props: RecordActionsProps) {
  const { description, recordKey, loaded, consequence, after, onChanged } = props;
  const [action, setAction] = useState<'edit' | 'delete'>();
  const state = useObservable(session);
  if (!hasScope(state, `${description.scope}:write`)) return null;
  const close = () => setAction(undefined);
  const isProtected =
    description.protectedBy !== undefined && loaded.record[description.protectedBy] === true;
  return (
    <>
      <button type="button" class="button" onClick={() => setAction('edit')}>
        <Icon name="edit" /> Edit
      </button>
      {!isProtected && canCreateOrDelete(state, description) && (
        <button type="button" class="button" onClick={() => setAction('delete')}>
          <Icon name="remove" /> Delete
        </button>
      )}
      {action === 'edit' && (
        <EditRecordDialog
          description={description}
          recordKey={recordKey}
          onDone={() => {
            onChanged();
            close();
          }}
          onClose={close}
        />
      )}
      {action === 'delete' && (
        <DeleteDialog
          description={description}
          recordKey={recordKey}
          shown={loaded.record}
          verb="Delete"
          confirmation={confirmationWord('delete', loaded.record.id)}
          onRemoved={() => navigate(after)}
          onClose={close}
        >
          {({ name }) => (
            <p>
              <strong>
                <UntrustedText text={String(name)} />
              </strong>{' '}
              will be deleted permanently. {consequence}
            </p>
          )}
        </DeleteDialog>
      )}
    </>
  );
}
