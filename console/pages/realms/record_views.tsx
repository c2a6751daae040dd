import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type Key, type Order, pagesOf, readRealmName, type Shown, type Tagged } from '../../api/records.ts';
import { useAsked } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import { CreateDialog, EditDialog, mayMakeOrRemove, Removal } from '../../form/record_dialogs.tsx';
import { go, href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { confirmationWord } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Instant } from '../../parts/timestamp.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import { LongList } from '../../parts/virtual_list.tsx';
import { may, session } from '../../session/session.ts';

/** The pages above whatever belongs to a realm. */
export function aboveIn(realm: string) {
  return [
    { label: 'Realms', href: href('realms') },
    { label: <RealmName realm={realm} />, href: href('realms', realm) },
  ];
}

function RealmName({ realm }: { readonly realm: string }) {
  const { answer: name } = useAsked((signal) => readRealmName(realm, signal), [realm]);
  return name === undefined ? <>Realm</> : <Said text={name} />;
}

interface RecordListProps {
  readonly description: Description;
  readonly above: Key;
  readonly hrefOf: (record: Shown) => string;
  /** Beside the name. */
  readonly more: (record: Shown) => string;
  readonly empty: ComponentChildren;
}

/** The records of a collection, the newest first or the oldest. */
export function RecordList({ description, above, hrefOf, more, empty }: RecordListProps) {
  const [order, setOrder] = useState<Order>('-created_at');
  const read = useMemo(() => pagesOf(description, above, order), [description, above.join('/'), order]);
  const { many, icon } = nounOf(description.name);
  const other = order === 'created_at' ? '-created_at' : 'created_at';
  return (
    <div class="stack-tight">
      <div class="list-tools">
        <button type="button" class="text-button" onClick={() => setOrder(other)}>
          <Icon name="order" /> {order === 'created_at' ? 'Oldest first' : 'Newest first'}
        </button>
      </div>
      <LongList
        label={many}
        read={read}
        empty={empty}
        row={(record) => (
          <a class="row" href={hrefOf(record)}>
            <Icon name={icon} />
            <span class="row-main">
              <span>
                <Said text={String(record.name)} />
              </span>
              <span class="faint">
                <Said text={more(record)} />
              </span>
            </span>
            <span class="row-side faint small">
              <Instant at={record.created_at} />
            </span>
          </a>
        )}
      />
    </div>
  );
}

interface CreateButtonProps {
  readonly description: Description;
  readonly above: Key;
  readonly onDone: (made: Tagged) => void;
}

/** Makes a record, for who may. */
export function CreateButton({ description, above, onDone }: CreateButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const state = useObserved(session);
  if (!mayMakeOrRemove(state, description)) return null;
  const { one } = nounOf(description.name);
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setOpen(true)}>
        <Icon name="add" /> New {one}
      </button>
      {isOpen && (
        <CreateDialog
          description={description}
          above={above}
          onDone={(made) => {
            setOpen(false);
            onDone(made);
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

interface RecordActionsProps {
  readonly description: Description;
  readonly recordKey: Key;
  readonly tagged: Tagged;
  /** What goes along with the record, in words. */
  readonly consequence: string;
  /** Where to go when it is gone. */
  readonly after: string;
  readonly onChanged: () => void;
}

/** Edits or deletes a realm or a profile, for who may write. */
export function RecordActions(props: RecordActionsProps) {
  const { description, recordKey, tagged, consequence, after, onChanged } = props;
  const [act, setAct] = useState<'edit' | 'delete'>();
  const state = useObserved(session);
  if (!may(state, `${description.scope}:write`)) return null;
  const close = () => setAct(undefined);
  const isKept = description.keptBy !== undefined && tagged.record[description.keptBy] === true;
  return (
    <>
      <button type="button" class="button" onClick={() => setAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      {!isKept && mayMakeOrRemove(state, description) && (
        <button type="button" class="button" onClick={() => setAct('delete')}>
          <Icon name="remove" /> Delete
        </button>
      )}
      {act === 'edit' && (
        <EditDialog
          description={description}
          recordKey={recordKey}
          onDone={() => {
            onChanged();
            close();
          }}
          onClose={close}
        />
      )}
      {act === 'delete' && (
        <Removal
          description={description}
          recordKey={recordKey}
          shown={tagged.record}
          verb="Delete"
          word={confirmationWord('delete', tagged.record.id)}
          onRemoved={() => go(after)}
          onClose={close}
        >
          {({ name }) => (
            <p>
              <strong>
                <Said text={String(name)} />
              </strong>{' '}
              will be deleted permanently. {consequence}
            </p>
          )}
        </Removal>
      )}
    </>
  );
}
