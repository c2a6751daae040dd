import { SCHEMA } from 'authrealm:schema';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { Managed, WithSecret } from '../../api/admin.ts';
import { toProblem } from '../../api/problem.ts';
import type { WithEtag } from '../../api/records.ts';
import { ChangedSinceShown, Comparison } from '../../form/comparison.tsx';
import type { Value, Values } from '../../form/record_form.tsx';
import { ActionError, useAction } from '../../form/use_action.tsx';
import { navigate } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { Confirmation, confirmationWord, Dialog, FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import type { Action, Kind } from './kind.ts';

type Labels<UntrustedText> = Kind<UntrustedText>['labels'];

/** Every member that is said of one, as a comparison names it. */
function comparedFields<UntrustedText>(labels: Labels<UntrustedText>) {
  return memberNames(labels).map((name) => ({ name, label: labels[name] }));
}

function memberNames<UntrustedText>(
  labels: Labels<UntrustedText>,
): readonly (keyof UntrustedText & string)[] {
  return Object.keys(labels) as (keyof UntrustedText & string)[];
}

/** What is said of one, as a comparison shows it. */
function comparedValues<UntrustedText>(labels: Labels<UntrustedText>, input: UntrustedText): Values {
  return Object.fromEntries(memberNames(labels).map((member) => [member, comparedValue(input[member])]));
}

/** A text, or that something is so. */
function comparedValue(member: unknown): Value {
  if (typeof member === 'boolean') return member;
  return Array.isArray(member) ? member.join('\n') : String(member ?? '');
}

interface ManagedActionDialogProps<UntrustedText, Created> {
  readonly kind: Kind<UntrustedText, Created>;
  readonly action: Action;
  readonly withEtag: WithEtag<Managed & UntrustedText>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

const VERBS = { disable: 'Disable', enable: 'Enable', delete: 'Delete' } as const;

/** Gives one a new secret, turns it off or on, or deletes it, after asking. */
export function ManagedActionDialog<UntrustedText, Created>(
  props: ManagedActionDialogProps<UntrustedText, Created>,
) {
  const { kind, action, withEtag, onChanged, onClose } = props;
  const { what, collection, labels, words } = kind;
  const [shown] = useState(withEtag.record);
  const { id, name } = withEtag.record;
  const { isBusy, problem, run } = useAction(() => {
    announce(action === 'enable' ? words.enabledMessage : `The ${what} is ${action}d.`);
    if (action === 'delete') {
      navigate(kind.home.href);
    } else {
      onChanged();
      onClose();
    }
  }, onChanged);
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
    <Confirmation
      title={`${VERBS[action]} this ${what}?`}
      confirmation={action === 'delete' ? confirmationWord('delete', id) : undefined}
      verb={VERBS[action]}
      isDanger={action !== 'enable'}
      isBusy={isBusy}
      onConfirm={() =>
        run(() =>
          action === 'delete' ? collection.remove(id, withEtag.etag) : collection.setEnabled(id, action),
        )
      }
      onClose={onClose}
    >
      {summary}
      <ActionError problem={problem} />
      {action === 'delete' && (
        <ChangedSinceShown
          fields={comparedFields<UntrustedText>(labels)}
          before={comparedValues<UntrustedText>(labels, shown)}
          now={comparedValues<UntrustedText>(labels, withEtag.record)}
          isNewVersion={withEtag.record.meta.updated_at !== shown.meta.updated_at}
        />
      )}
    </Confirmation>
  );
}

interface EditManagedDialogProps<UntrustedText, Created> {
  readonly kind: Kind<UntrustedText, Created>;
  readonly withEtag: WithEtag<Managed & UntrustedText>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

interface ManagedConflict<UntrustedText> {
  readonly mine: UntrustedText;
  readonly theirs: WithEtag<Managed & UntrustedText>;
}

/** Changes what is said of one. Where another one was faster, both are shown before anything is saved. */
export function EditManagedDialog<UntrustedText, Created extends UntrustedText>(
  props: EditManagedDialogProps<UntrustedText, Created>,
) {
  const { kind, withEtag, onChanged, onClose } = props;
  const { what, collection, labels, Form } = kind;
  const [from, setFrom] = useState(withEtag);
  const [conflict, setConflict] = useState<ManagedConflict<UntrustedText>>();
  const { id } = withEtag.record;
  const send = async (mine: UntrustedText, etag: string | undefined) => {
    const isNewVersion = (member: keyof UntrustedText) =>
      JSON.stringify(from.record[member]) !== JSON.stringify(mine[member]);
    const input = memberNames<UntrustedText>(labels)
      .filter(isNewVersion)
      .map((member) => [member, mine[member]]);
    await collection.update(id, Object.fromEntries(input) as Partial<UntrustedText>, etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  const showConflict = async (mine: UntrustedText) =>
    setConflict({ mine, theirs: await collection.read(id) });
  const save = async (mine: UntrustedText) => {
    try {
      await send(mine, from.etag);
    } catch (error) {
      if (toProblem(error).kind !== 'stale') throw error;
      await showConflict(mine);
    }
  };
  return (
    <Dialog title={conflict ? 'Edit conflict' : `Edit ${what}`} onClose={onClose}>
      {conflict ? (
        <Comparison
          fields={comparedFields<UntrustedText>(labels)}
          before={comparedValues<UntrustedText>(labels, from.record)}
          mine={comparedValues<UntrustedText>(labels, conflict.mine)}
          theirs={comparedValues<UntrustedText>(labels, conflict.theirs.record)}
          overwrite={() => send(conflict.mine, conflict.theirs.etag)}
          onStale={() => showConflict(conflict.mine)}
          takeTheirs={() => {
            setFrom(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <Form key={from.etag} initial={from.record} verb="update" save={save} onCancel={onClose} />
      )}
    </Dialog>
  );
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const OVERLAPS: readonly (readonly [seconds: number, words: string])[] = [
  [0, 'not at all: it stops working immediately'],
  [HOUR_SECONDS, '1 hour'],
  [DAY_SECONDS, '24 hours'],
  [7 * DAY_SECONDS, '7 days'],
  [30 * DAY_SECONDS, '30 days'],
];

interface RotationDialogProps {
  /** `client`, `webhook`. */
  readonly what: string;
  /** Of which one, and what comes of it. */
  readonly summary: ComponentChildren;
  /** The secret it has now holds for so many seconds more. */
  readonly rotate: (overlapSeconds: number) => Promise<WithSecret>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Gives something a new secret, and shows it once. */
function RotationDialog({ what, summary, rotate, onDone, onClose }: RotationDialogProps) {
  const [overlap, setOverlap] = useState(DAY_SECONDS);
  const [issued, setIssued] = useState<WithSecret>();
  const { isBusy, problem, run } = useAction(onDone);
  const field = useId();
  if (issued) return <SecretDialog what={what} issued={issued} onClose={onClose} />;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) run(async () => setIssued(await rotate(overlap)));
  };
  return (
    <Dialog title="New secret" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {summary}
        <div class="field">
          <label for={field}>Keep accepting the current secret for</label>
          <select
            id={field}
            value={String(overlap)}
            onChange={({ currentTarget }) => setOverlap(Number(currentTarget.value))}
          >
            {OVERLAPS.filter(
              ([seconds]) => seconds <= SCHEMA.limits.secretOverlapHoursMax * HOUR_SECONDS,
            ).map(([seconds, words]) => (
              <option key={seconds} value={String(seconds)}>
                {words}
              </option>
            ))}
          </select>
        </div>
        <ActionError problem={problem} />
        <FormActions submit="Create secret" isDisabled={isBusy} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

interface SecretDialogProps {
  /** What that is: `client`. */
  readonly what: string;
  readonly issued: WithSecret;
  readonly onClose: () => void;
}

/** A secret, the one time that it is known. It lies in nothing that outlives the dialog. */
export function SecretDialog({ what, issued, onClose }: SecretDialogProps) {
  const { id, name, secret, previous_secret_expires_at: previous } = issued;
  return (
    <Dialog title={`Secret of this ${what}`} onClose={onClose}>
      <div class="stack">
        <p class="note note-warn">
          <Icon name="warning" />
          <span>Copy it now: it is shown only once. If it is lost, create a new secret.</span>
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
          <Fact label="Secret">
            <span class="command">
              <code>{secret}</code>
              <CopyButton text={secret} what="the secret" />
            </span>
          </Fact>
          {previous !== null && (
            <Fact label="Old secret">
              accepted until <Timestamp at={previous} />
            </Fact>
          )}
        </dl>
        <div class="actions">
          <button type="button" class="button button-main" onClick={onClose}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}
