import { useState } from 'preact/hooks';
import {
  ADMIN,
  createSigningKey,
  readSigningKeys,
  type SigningKey,
  withdrawSigningKey,
} from '../../api/admin.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { Told, useAct } from '../../form/use_action.tsx';
import { useObserved } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Identifier } from '../../parts/copy.tsx';
import { Confirmation, confirmationWord } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Instant } from '../../parts/timestamp.tsx';
import { may, session } from '../../session/session.ts';

type State = SigningKey['state'];

const WORDS: Readonly<Record<State, string>> = {
  signs: 'Signs all new tokens',
  next: 'Published; signs next',
  accepted: 'No longer signs; its tokens are accepted until they expire',
  retired: 'All of its tokens have expired',
  withdrawn: 'Withdrawn: its tokens are rejected',
};

const BADGES: Readonly<Record<State, string>> = {
  signs: 'badge badge-good',
  next: 'badge',
  accepted: 'badge',
  retired: 'badge',
  withdrawn: 'badge badge-danger',
};

/** The keys that sign access tokens, the newest first. */
export function KeysSection() {
  const state = useObserved(session);
  const asked = useAsked(readSigningKeys, []);
  const [isMaking, setMaking] = useState(false);
  const [leaving, setLeaving] = useState<SigningKey>();
  const mayWrite = may(state, ADMIN);
  return (
    <section class="section" aria-label="Signing keys">
      <div class="card-head">
        <h2>Signing keys</h2>
        {mayWrite && (
          <button type="button" class="button" onClick={() => setMaking(true)}>
            <Icon name="add" /> New key
          </button>
        )}
      </div>
      <Answered asked={asked}>
        {(keys) => (
          <ul class="rows">
            {keys.toReversed().map((key) => (
              <li key={key.id}>
                <KeyRow signingKey={key} onWithdraw={mayWrite ? () => setLeaving(key) : undefined} />
              </li>
            ))}
          </ul>
        )}
      </Answered>
      {isMaking && <Making onClose={() => setMaking(false)} onDone={asked.again} />}
      {leaving && (
        <Withdrawal signingKey={leaving} onClose={() => setLeaving(undefined)} onDone={asked.again} />
      )}
    </section>
  );
}

/** Keys are told apart by how their IDs end. */
const SHOWN = 4;

interface KeyRowProps {
  readonly signingKey: SigningKey;
  readonly onWithdraw: (() => void) | undefined;
}

function KeyRow({ signingKey, onWithdraw }: KeyRowProps) {
  const { id, state, signs_from, withdrawn_at } = signingKey;
  return (
    <div class="row key-row">
      <div class="row-main">
        <Identifier id={id} what="the key ID" />
        <span class="faint small">
          {WORDS[state]} · {withdrawn_at === null ? 'from ' : ''}
          <Instant at={withdrawn_at ?? signs_from} />
        </span>
      </div>
      <span class={BADGES[state]}>{state}</span>
      {onWithdraw && state !== 'withdrawn' && state !== 'retired' && (
        <button
          type="button"
          class="text-button"
          aria-label={`Withdraw key ${id.slice(-SHOWN)}`}
          onClick={onWithdraw}
        >
          <Icon name="remove" /> Withdraw
        </button>
      )}
    </div>
  );
}

interface KeyDialogProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Tells what was done, and closes the dialog. */
function doneWith({ onClose, onDone }: KeyDialogProps, words: string): () => void {
  return () => {
    announce(words);
    onDone();
    onClose();
  };
}

function Making(props: KeyDialogProps) {
  const { isBusy, problem, run } = useAct(doneWith(props, 'The key was created.'));
  return (
    <Confirmation
      title="New signing key"
      verb="Create key"
      isDanger={false}
      isBusy={isBusy}
      onConfirm={() => run(createSigningKey)}
      onClose={props.onClose}
    >
      <p>
        The key is published now and starts signing once every cached key set includes it. Tokens of the
        previous key stay valid until they expire. No session ends.
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}

function Withdrawal({ signingKey, ...props }: KeyDialogProps & { readonly signingKey: SigningKey }) {
  const { isBusy, problem, run } = useAct(doneWith(props, 'The key was withdrawn.'));
  const { id, state } = signingKey;
  return (
    <Confirmation
      title="Withdraw this signing key?"
      word={confirmationWord('withdraw', id)}
      verb="Withdraw"
      isBusy={isBusy}
      onConfirm={() => run(() => withdrawSigningKey(id))}
      onClose={props.onClose}
    >
      <p>
        Every token signed by <code>{id}</code> is rejected within one second. This cannot be undone. Do it if
        the key or its tokens may have been compromised.
      </p>
      {state === 'signs' && (
        <p>
          It is the current signing key:{' '}
          <strong>every client needs a new token, and this session ends too.</strong> Another key takes over
          immediately.
        </p>
      )}
      <Told problem={problem} />
    </Confirmation>
  );
}
