import { DESCRIBED } from 'authrealm:described';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import {
  deleteClient,
  type IssuedClient,
  rotateClient,
  type TaggedClient,
  turnClient,
} from '../../api/clients.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import { go, href } from '../../layout/router.ts';
import { announce } from '../../parts/announcer.tsx';
import { Confirmation, Dialog } from '../../parts/dialog.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { EditClient } from './edit_client.tsx';
import { SecretDialog } from './secret_dialog.tsx';

export type ClientAct = 'edit' | 'rotate' | 'disable' | 'enable' | 'delete';

export interface ClientDialogProps {
  readonly tagged: TaggedClient;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Does something with a client, after asking. */
export function ClientDialog({ act, ...props }: ClientDialogProps & { readonly act: ClientAct }) {
  switch (act) {
    case 'edit':
      return <EditClient {...props} />;
    case 'rotate':
      return <Rotation {...props} />;
    case 'delete':
      return <Deletion {...props} />;
    default:
      return <Turning {...props} act={act} />;
  }
}

/** Runs something once at a time, and tells what became of it. */
function useAct(done: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = (act: () => Promise<void>) => {
    setBusy(true);
    setProblem(undefined);
    act()
      .then(done)
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => setBusy(false));
  };
  return { isBusy, problem, run };
}

/** What the service complains about, in words of its own. */
function Told({ problem }: { readonly problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <>
      <ProblemNote problem={problem} />
      {problem.complaints.map(({ detail }) => (
        <p key={detail} class="complaint">
          {detail}
        </p>
      ))}
    </>
  );
}

function Turning({
  act,
  tagged,
  onClose,
  onChanged,
}: ClientDialogProps & { readonly act: 'disable' | 'enable' }) {
  const { client } = tagged;
  const { isBusy, problem, run } = useAct(() => {
    announce(act === 'disable' ? 'The client is disabled.' : 'The client is accepted again.');
    onChanged();
    onClose();
  });
  const isOff = act === 'disable';
  return (
    <Dialog title={isOff ? 'Disable this client?' : 'Enable this client?'} onClose={onClose}>
      <div class="stack">
        <Named tagged={tagged}>
          {isOff
            ? 'is refused within a second, and so are its tokens. It can be enabled again.'
            : 'is accepted again, and so are its tokens that have not ended.'}
        </Named>
        <Told problem={problem} />
        <div class="actions">
          <button
            type="button"
            class={isOff ? 'button button-danger' : 'button button-main'}
            disabled={isBusy}
            onClick={() => run(() => turnClient(client.id, act))}
          >
            {isOff ? 'Disable' : 'Enable'}
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function Named({
  tagged,
  children,
}: {
  readonly tagged: TaggedClient;
  readonly children: ComponentChildren;
}) {
  return (
    <p>
      <strong>
        <Said text={tagged.client.name} />
      </strong>{' '}
      {children}
    </p>
  );
}

/** Characters of the ID that have to be typed. */
const TYPED = 4;

function Deletion({ tagged, onClose }: ClientDialogProps) {
  const { client, etag } = tagged;
  const { isBusy, problem, run } = useAct(() => {
    announce('The client is deleted.');
    go(href('clients'));
  });
  return (
    <Confirmation
      title="Delete this client?"
      word={`delete ${client.id.slice(-TYPED)}`}
      verb="Delete"
      isBusy={isBusy}
      onConfirm={() => run(() => deleteClient(client.id, etag))}
      onClose={onClose}
    >
      <Named tagged={tagged}>
        goes for good, and its tokens are refused within a second. What it did stays in the log.
      </Named>
      <Told problem={problem} />
    </Confirmation>
  );
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const OVERLAPS: readonly (readonly [seconds: number, words: string])[] = [
  [0, 'no longer: it ends at once'],
  [HOUR_SECONDS, '1 hour'],
  [DAY_SECONDS, '24 hours'],
  [7 * DAY_SECONDS, '7 days'],
  [30 * DAY_SECONDS, '30 days'],
];

function Rotation({ tagged, onClose, onChanged }: ClientDialogProps) {
  const [overlap, setOverlap] = useState(DAY_SECONDS);
  const [issued, setIssued] = useState<IssuedClient>();
  const { isBusy, problem, run } = useAct(onChanged);
  const field = useId();
  if (issued) return <SecretDialog issued={issued} onClose={onClose} />;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) run(async () => setIssued(await rotateClient(tagged.client.id, overlap)));
  };
  return (
    <Dialog title="New secret" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <Named tagged={tagged}>gets a new secret, which is shown once.</Named>
        <div class="field">
          <label for={field}>The secret it has now is accepted for</label>
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
        <div class="actions">
          <button type="submit" class="button button-main" disabled={isBusy}>
            Make a new secret
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
