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
  signs: 'Signs every new token',
  next: 'Published; signs next',
  accepted: 'Signs no more; its tokens are accepted until they end',
  retired: 'Its tokens have all ended',
  withdrawn: 'Withdrawn: its tokens are refused',
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
  const { isBusy, problem, run } = useAct(doneWith(props, 'The key is there.'));
  return (
    <Confirmation
      title="New signing key"
      verb="Make a new key"
      isDanger={false}
      isBusy={isBusy}
      onConfirm={() => run(createSigningKey)}
      onClose={props.onClose}
    >
      <p>
        It is published now, and signs once every cached key set has seen it. Tokens of the key before stay
        good until they end. Nobody is signed out.
      </p>
      <Told problem={problem} />
    </Confirmation>
  );
}

function Withdrawal({ signingKey, ...props }: KeyDialogProps & { readonly signingKey: SigningKey }) {
  const { isBusy, problem, run } = useAct(doneWith(props, 'The key is withdrawn.'));
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
        Every token that <code>{id}</code> has signed is refused within a second, and this cannot be taken
        back. Do it where the key or its tokens may be in wrong hands.
      </p>
      {state === 'signs' && (
        <p>
          It signs now: <strong>every client needs a new token, and this session ends as well.</strong>{' '}
          Another key signs at once.
        </p>
      )}
      <Told problem={problem} />
    </Confirmation>
  );
}
