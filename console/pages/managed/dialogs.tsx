import { SCHEMA } from 'authrealm:schema';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Managed, WithSecret } from '../../api/admin.ts';
import type { WithEtag } from '../../api/records.ts';
import { ChangedSinceShown, EditDialog } from '../../form/comparison.tsx';
import { SelectField } from '../../form/fields.tsx';
import type { Value, Values } from '../../form/record_form.tsx';
import { ActionDialog, ActionError, useAction } from '../../form/use_action.tsx';
import { navigate } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { confirmationWord, Dialog, FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { capitalized } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import type { Action, Kind } from './kind.ts';

function memberNames<Input>(blank: Input): readonly (keyof Input & string)[] {
  return Object.keys(blank as object) as (keyof Input & string)[];
}

/** The writable members, for a comparison. */
function comparedFields<Input>(blank: Input) {
  return memberNames(blank).map((name) => ({ name }));
}

/** The values of the writable members, for a comparison. */
function comparedValues<Input>(blank: Input, input: Input): Values {
  return Object.fromEntries(memberNames(blank).map((member) => [member, comparedValue(input[member])]));
}

/** Converts a member to text, except flags. */
function comparedValue(member: unknown): Value {
  if (typeof member === 'boolean') return member;
  return Array.isArray(member) ? member.join('\n') : String(member ?? '');
}

interface ManagedActionDialogProps<Input, Created> {
  readonly kind: Kind<Input, Created>;
  readonly action: Action;
  readonly loaded: WithEtag<Managed & Input>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/** Rotates, disables, enables or deletes after confirmation. */
export function ManagedActionDialog<Input, Created>(props: ManagedActionDialogProps<Input, Created>) {
  const { kind, action, loaded, onChanged, onClose } = props;
  const { what, collection, blank, words } = kind;
  const [shown] = useState(loaded.record);
  const { id, name } = loaded.record;
  const verb = capitalized(action);
  const summary = (
    <p>
      <strong>
        <UntrustedText text={name} />
      </strong>{' '}
      {words.of[action]}
    </p>
  );
  if (action === 'rotate') {
    const rotate = (seconds: number) => collection.rotate(id, seconds);
    return (
      <RotationDialog what={what} summary={summary} rotate={rotate} onDone={onChanged} onClose={onClose} />
    );
  }
  return (
    <ActionDialog
      title={`${verb} this ${what}?`}
      confirmation={action === 'delete' ? confirmationWord('delete', id) : undefined}
      verb={verb}
      isDanger={action !== 'enable'}
      action={() =>
        action === 'delete' ? collection.remove(id, loaded.etag) : collection.setEnabled(id, action)
      }
      message={`The ${what} was ${action}d.`}
      onDone={action === 'delete' ? () => navigate(kind.home.href) : onChanged}
      onStale={onChanged}
      onClose={onClose}
    >
      {summary}
      {action === 'delete' && (
        <ChangedSinceShown
          fields={comparedFields(blank)}
          before={comparedValues<Input>(blank, shown)}
          now={comparedValues<Input>(blank, loaded.record)}
          isNewVersion={loaded.record.meta.updated_at !== shown.meta.updated_at}
        />
      )}
    </ActionDialog>
  );
}

interface EditManagedDialogProps<Input, Created> {
  readonly kind: Kind<Input, Created>;
  readonly loaded: WithEtag<Managed & Input>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/** Edits a client or target as it was when the dialog opened: a reload of the page keeps the input. */
export function EditManagedDialog<Input, Created extends Input>(
  props: EditManagedDialogProps<Input, Created>,
) {
  const { kind, onChanged, onClose } = props;
  const { what, collection, blank, Form } = kind;
  const [loaded] = useState(props.loaded);
  const { id } = loaded.record;
  const send = async (from: Input, mine: Input, etag: string | undefined) => {
    const input = memberNames<Input>(blank)
      .filter((member) => JSON.stringify(from[member]) !== JSON.stringify(mine[member]))
      .map((member) => [member, mine[member]]);
    await collection.update(id, Object.fromEntries(input) as Partial<Input>, etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  return (
    <EditDialog
      noun={what}
      fields={comparedFields(blank)}
      valuesOf={(record: Input) => comparedValues<Input>(blank, record)}
      loaded={loaded}
      read={() => collection.read(id)}
      form={({ record, etag: version }, save) => (
        <Form
          key={version}
          initial={record}
          verb="update"
          save={(mine) =>
            save({ mine: comparedValues<Input>(blank, mine), send: (etag) => send(record, mine, etag) })
          }
          onCancel={onClose}
        />
      )}
      onClose={onClose}
    />
  );
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const OVERLAPS: readonly (readonly [seconds: number, label: string])[] = [
  [0, '0 hours: it stops working immediately'],
  [HOUR_SECONDS, '1 hour'],
  [DAY_SECONDS, '24 hours'],
  [7 * DAY_SECONDS, '7 days'],
  [30 * DAY_SECONDS, '30 days'],
];

interface RotationDialogProps {
  /** `client`, `webhook`. */
  readonly what: string;
  /** Its name and the consequence. */
  readonly summary: ComponentChildren;
  /** Creates a new secret; the current one stays valid for `overlapSeconds`. */
  readonly rotate: (overlapSeconds: number) => Promise<WithSecret>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Creates a new secret and shows it once. */
function RotationDialog({ what, summary, rotate, onDone, onClose }: RotationDialogProps) {
  const [overlap, setOverlap] = useState(DAY_SECONDS);
  const [issued, setIssued] = useState<WithSecret>();
  const { isBusy, problem, run } = useAction(onDone);
  if (issued) return <SecretDialog what={what} issued={issued} onClose={onClose} />;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) run(async () => setIssued(await rotate(overlap)));
  };
  return (
    <Dialog title="New secret" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {summary}
        <SelectField
          label="Keep accepting the current secret for"
          value={String(overlap)}
          options={OVERLAPS.filter(
            ([seconds]) => seconds <= SCHEMA.limits.secretOverlapHoursMax * HOUR_SECONDS,
          ).map(([seconds, label]) => ({ id: String(seconds), label }))}
          onValue={(value) => setOverlap(Number(value))}
        />
        <ActionError problem={problem} />
        <FormActions submit="Create secret" isDisabled={isBusy} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

interface SecretDialogProps {
  /** The kind of its owner, such as `client`. */
  readonly what: string;
  readonly issued: WithSecret;
  readonly onClose: () => void;
}

/** Shows a secret once. It is stored only in this dialog. */
export function SecretDialog({ what, issued, onClose }: SecretDialogProps) {
  const { id, name, secret, previous_secret_expires_at: previous } = issued;
  const noun = what === 'invitation' ? 'link' : 'secret';
  return (
    <Dialog title={`${capitalized(noun)} of this ${what}`}>
      <div class="stack">
        <p class="note note-warn">
          <Icon name="warning" />
          <span>Store it now: it is shown only once. If it is lost, create a new {noun}.</span>
        </p>
        <dl class="facts">
          <Fact label="Name">
            <UntrustedText text={name} />
          </Fact>
          <Fact label="ID">
            <span class="command">
              <code>{id}</code>
              <CopyButton text={id} what={`the ${what} ID`} />
            </span>
          </Fact>
          <Fact label={capitalized(noun)}>
            <span class="command">
              <code>{secret}</code>
              <CopyButton text={secret} what={`the ${noun}`} />
            </span>
          </Fact>
          {previous && (
            <Fact label="Old secret">
              accepted until <Timestamp at={previous} />
            </Fact>
          )}
        </dl>
        <div class="actions">
          <button type="button" class="button button-main" onClick={onClose}>
            I have stored it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
