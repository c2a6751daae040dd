import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ADMIN, type Administered, type Issued } from '../../api/admin.ts';
import { readRealmNames, type Tagged } from '../../api/records.ts';
import { type Asked, useAsked } from '../../api/use_fetch.ts';
import { PageHead } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Instant } from '../../parts/timestamp.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import { may, session } from '../../session/session.ts';
import { ActDialog, EditManagedDialog, SecretDialog } from './dialogs.tsx';
import type { Act, Kind } from './kind.ts';

interface AdministeredPageProps<Said, Created, Read> {
  readonly kind: Kind<Said, Created>;
  readonly asked: Asked<Read>;
  /** What only its kind has to tell, as facts. */
  readonly facts: (answer: Read) => ComponentChildren;
  /** What stands below the facts. */
  readonly rest?: (answer: Read) => ComponentChildren;
}

/** One of a kind: what is known of it, and what can be done with it. */
export function AdministeredPage<Said, Created extends Said, Read extends Tagged<Administered & Said>>(
  props: AdministeredPageProps<Said, Created, Read>,
) {
  const { kind, asked, facts, rest } = props;
  const { answer } = asked;
  return (
    <>
      <PageHead
        title={answer?.record.name ?? kind.title}
        heading={answer ? <Said text={answer.record.name} /> : undefined}
        above={[kind.home]}
        actions={answer && <ActButtons kind={kind} tagged={answer} onChanged={asked.again} />}
      />
      <Answered asked={asked}>
        {(known) => (
          <>
            <Facts kind={kind} record={known.record}>
              {facts(known)}
            </Facts>
            {rest?.(known)}
          </>
        )}
      </Answered>
    </>
  );
}

interface FactsProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly record: Administered;
  readonly children: ComponentChildren;
}

function Facts<Said, Created>({ kind: { what, words }, record, children }: FactsProps<Said, Created>) {
  const { is_disabled: isOff, previous_secret_expires_at: previous, meta } = record;
  return (
    <section class="card" aria-label={`This ${what}`}>
      <dl class="facts">
        <Fact label="State">
          <span class={isOff ? 'badge badge-warn' : 'badge badge-good'}>
            {isOff ? words.isOff : words.isOn}
          </span>
        </Fact>
        {children}
        {previous !== null && (
          <Fact label="Old secret">
            {words.before} <Instant at={previous} />
          </Fact>
        )}
        <Fact label="Created">
          <Instant at={meta.created_at} />
        </Fact>
        <Fact label="Changed">
          <Instant at={meta.updated_at} />
        </Fact>
      </dl>
    </section>
  );
}

/** In which realms something holds. */
export function RealmsFact({ realms }: { readonly realms: '*' | readonly string[] }) {
  return <Fact label="Realms">{realms === '*' ? 'all' : <RealmLinks ids={realms} />}</Fact>;
}

/** By name where it is known, else by ID. */
function RealmLinks({ ids }: { readonly ids: readonly string[] }) {
  const { answer: known } = useAsked(readRealmNames, []);
  return (
    <ul>
      {ids.map((id) => {
        const realm = known?.find((each) => each.id === id);
        return (
          <li key={id}>
            <a href={href('realms', id)}>{realm ? <Said text={realm.name} /> : <code>{id}</code>}</a>
          </li>
        );
      })}
    </ul>
  );
}

interface NewButtonProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly onMade: () => void;
}

/** Makes one, for who may, and shows its secret once. */
export function NewButton<Said, Created>({ kind, onMade }: NewButtonProps<Said, Created>) {
  const { what, collection, blank, Form } = kind;
  const state = useObserved(session);
  const [isMaking, setMaking] = useState(false);
  const [issued, setIssued] = useState<Issued>();
  if (!may(state, ADMIN)) return null;
  const create = async (said: Created) => {
    setIssued(await collection.create(said));
    setMaking(false);
    onMade();
  };
  return (
    <>
      <button type="button" class="button button-main" onClick={() => setMaking(true)}>
        <Icon name="add" /> New {what}
      </button>
      {isMaking && (
        <Dialog title={`New ${what}`} onClose={() => setMaking(false)}>
          <Form begin={blank} verb="create" save={create} onCancel={() => setMaking(false)} />
        </Dialog>
      )}
      {issued && <SecretDialog what={what} issued={issued} onClose={() => setIssued(undefined)} />}
    </>
  );
}

interface ActButtonsProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
}

/** Everything that can be done with one, for who may. */
function ActButtons<Said, Created extends Said>(props: ActButtonsProps<Said, Created>) {
  const state = useObserved(session);
  const [act, setAct] = useState<Act | 'edit'>();
  if (!may(state, ADMIN)) return null;
  const isOff = props.tagged.record.is_disabled;
  const close = () => setAct(undefined);
  return (
    <>
      <button type="button" class="button" onClick={() => setAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      <button type="button" class="button" onClick={() => setAct('rotate')}>
        <Icon name="history" /> New secret
      </button>
      <button type="button" class="button" onClick={() => setAct(isOff ? 'enable' : 'disable')}>
        <Icon name={isOff ? 'done' : 'close'} /> {isOff ? 'Enable' : 'Disable'}
      </button>
      <button type="button" class="button" onClick={() => setAct('delete')}>
        <Icon name="remove" /> Delete
      </button>
      {act === 'edit' && <EditManagedDialog {...props} onClose={close} />}
      {act !== undefined && act !== 'edit' && <ActDialog {...props} act={act} onClose={close} />}
    </>
  );
}
