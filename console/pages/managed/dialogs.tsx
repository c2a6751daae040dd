import { DESCRIBED } from 'authrealm:described';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { Administered, Issued } from '../../api/admin.ts';
import { problemOf } from '../../api/problem.ts';
import type { Tagged } from '../../api/records.ts';
import { Comparison, Meanwhile } from '../../form/comparison.tsx';
import type { Value, Values } from '../../form/record_form.tsx';
import { Told, useAct } from '../../form/use_action.tsx';
import { go } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Confirmation, confirmationWord, Dialog, FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/timestamp.tsx';
import { Said } from '../../parts/untrusted_text.tsx';
import type { Act, Kind } from './kind.ts';

type Labels<Said> = Kind<Said>['labels'];

/** Every member that is said of one, as a comparison names it. */
function comparedFields<Said>(labels: Labels<Said>) {
  return memberNames(labels).map((name) => ({ name, label: labels[name] }));
}

function memberNames<Said>(labels: Labels<Said>): readonly (keyof Said & string)[] {
  return Object.keys(labels) as (keyof Said & string)[];
}

/** What is said of one, as a comparison shows it. */
function comparedValues<Said>(labels: Labels<Said>, said: Said): Values {
  return Object.fromEntries(memberNames(labels).map((member) => [member, comparedValue(said[member])]));
}

/** A text, or that something is so. */
function comparedValue(member: unknown): Value {
  if (typeof member === 'boolean') return member;
  return Array.isArray(member) ? member.join('\n') : String(member ?? '');
}

interface ActDialogProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly act: Act;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

const VERBS = { disable: 'Disable', enable: 'Enable', delete: 'Delete' } as const;

/** Gives one a new secret, turns it off or on, or deletes it, after asking. */
export function ActDialog<Said, Created>(props: ActDialogProps<Said, Created>) {
  const { kind, act, tagged, onChanged, onClose } = props;
  const { what, collection, labels, words } = kind;
  const [shown] = useState(tagged.record);
  const { id, name } = tagged.record;
  const { isBusy, problem, run } = useAct(() => {
    announce(act === 'enable' ? words.turnedOn : `The ${what} is ${act}d.`);
    if (act === 'delete') {
      go(kind.home.href);
    } else {
      onChanged();
      onClose();
    }
  }, onChanged);
  const named = (
    <p>
      <strong>
        <Said text={name} />
      </strong>{' '}
      {words.of[act]}
    </p>
  );
  if (act === 'rotate') {
    const rotate = (seconds: number) => collection.rotate(id, seconds);
    return <RotationDialog what={what} named={named} rotate={rotate} onDone={onChanged} onClose={onClose} />;
  }
  return (
    <Confirmation
      title={`${VERBS[act]} this ${what}?`}
      word={act === 'delete' ? confirmationWord('delete', id) : undefined}
      verb={VERBS[act]}
      isDanger={act !== 'enable'}
      isBusy={isBusy}
      onConfirm={() =>
        run(() => (act === 'delete' ? collection.remove(id, tagged.etag) : collection.turn(id, act)))
      }
      onClose={onClose}
    >
      {named}
      <Told problem={problem} />
      {act === 'delete' && (
        <Meanwhile
          fields={comparedFields<Said>(labels)}
          before={comparedValues<Said>(labels, shown)}
          now={comparedValues<Said>(labels, tagged.record)}
          isOther={tagged.record.meta.updated_at !== shown.meta.updated_at}
        />
      )}
    </Confirmation>
  );
}

interface EditManagedDialogProps<Said, Created> {
  readonly kind: Kind<Said, Created>;
  readonly tagged: Tagged<Administered & Said>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

interface ManagedConflict<Said> {
  readonly mine: Said;
  readonly theirs: Tagged<Administered & Said>;
}

/** Changes what is said of one. Where another one was faster, both are shown before anything is saved. */
export function EditManagedDialog<Said, Created extends Said>(props: EditManagedDialogProps<Said, Created>) {
  const { kind, tagged, onChanged, onClose } = props;
  const { what, collection, labels, Form } = kind;
  const [from, setFrom] = useState(tagged);
  const [conflict, setConflict] = useState<ManagedConflict<Said>>();
  const { id } = tagged.record;
  const send = async (mine: Said, etag: string | undefined) => {
    const isOther = (member: keyof Said) =>
      JSON.stringify(from.record[member]) !== JSON.stringify(mine[member]);
    const said = memberNames<Said>(labels)
      .filter(isOther)
      .map((member) => [member, mine[member]]);
    await collection.update(id, Object.fromEntries(said) as Partial<Said>, etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  const meet = async (mine: Said) => setConflict({ mine, theirs: await collection.read(id) });
  const save = async (mine: Said) => {
    try {
      await send(mine, from.etag);
    } catch (error) {
      if (problemOf(error).kind !== 'stale') throw error;
      await meet(mine);
    }
  };
  return (
    <Dialog title={conflict ? 'Edit conflict' : `Edit ${what}`} onClose={onClose}>
      {conflict ? (
        <Comparison
          fields={comparedFields<Said>(labels)}
          before={comparedValues<Said>(labels, from.record)}
          mine={comparedValues<Said>(labels, conflict.mine)}
          theirs={comparedValues<Said>(labels, conflict.theirs.record)}
          overwrite={() => send(conflict.mine, conflict.theirs.etag)}
          onStale={() => meet(conflict.mine)}
          takeTheirs={() => {
            setFrom(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <Form key={from.etag} begin={from.record} verb="update" save={save} onCancel={onClose} />
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
  readonly named: ComponentChildren;
  /** The secret it has now holds for so many seconds more. */
  readonly rotate: (overlapSeconds: number) => Promise<Issued>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Gives something a new secret, and shows it once. */
function RotationDialog({ what, named, rotate, onDone, onClose }: RotationDialogProps) {
  const [overlap, setOverlap] = useState(DAY_SECONDS);
  const [issued, setIssued] = useState<Issued>();
  const { isBusy, problem, run } = useAct(onDone);
  const field = useId();
  if (issued) return <SecretDialog what={what} issued={issued} onClose={onClose} />;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) run(async () => setIssued(await rotate(overlap)));
  };
  return (
    <Dialog title="New secret" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {named}
        <div class="field">
          <label for={field}>Keep accepting the current secret for</label>
          <select
            id={field}
            value={String(overlap)}
            onChange={({ currentTarget }) => setOverlap(Number(currentTarget.value))}
          >
            {OVERLAPS.filter(
              ([seconds]) => seconds <= DESCRIBED.limits.secretOverlapHoursMax * HOUR_SECONDS,
            ).map(([seconds, words]) => (
              <option key={seconds} value={String(seconds)}>
                {words}
              </option>
            ))}
          </select>
        </div>
        <Told problem={problem} />
        <FormActions submit="Create secret" isOff={isBusy} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

interface SecretDialogProps {
  /** What that is: `client`. */
  readonly what: string;
  readonly issued: Issued;
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
            <Said text={name} />
          </Fact>
          <Fact label="ID">
            <span class="command">
              <code>{id}</code>
              <Copy text={id} what={`the ${what} ID`} />
            </span>
          </Fact>
          <Fact label="Secret">
            <span class="command">
              <code>{secret}</code>
              <Copy text={secret} what="the secret" />
            </span>
          </Fact>
          {previous !== null && (
            <Fact label="Old secret">
              accepted until <Instant at={previous} />
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
