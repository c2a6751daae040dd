import { useState } from 'preact/hooks';
import {
  ADMIN,
  createSigningKey,
  readSigningKeys,
  type SigningKey,
  withdrawSigningKey,
} from '../../api/admin.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { ActionDialog } from '../../form/use_action.tsx';
import { useObservable } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { confirmationWord } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { hasScope, session } from '../../session/session.ts';

/** The state of a key in one word or two, and in a sentence. */
const STATES: Readonly<
  Record<SigningKey['state'], readonly [badge: string, words: string, sentence: string]>
> = {
  signs: ['badge badge-good', 'signing', 'Signs all new tokens'],
  next: ['badge', 'next', 'Published; signs next'],
  accepted: ['badge', 'still accepted', 'No longer signs; its tokens are accepted until they expire'],
  retired: ['badge', 'retired', 'All of its tokens have expired'],
  withdrawn: ['badge badge-danger', 'withdrawn', 'Withdrawn: its tokens are rejected'],
};

/** The signing keys of access tokens, newest first. */
export function KeysSection() {
  const state = useObservable(session);
  const fetched = useFetch(readSigningKeys, []);
  const [isCreating, setCreating] = useState(false);
  const [withdrawing, setWithdrawing] = useState<SigningKey>();
  const mayWrite = hasScope(state, ADMIN);
  return (
    <section class="section" aria-label="Signing keys">
      <div class="card-head">
        <h2>Signing keys</h2>
        {mayWrite && (
          <button type="button" class="button" onClick={() => setCreating(true)}>
            <Icon name="add" /> New key
          </button>
        )}
      </div>
      <Loaded fetched={fetched}>
        {(keys) => (
          <ul class="rows">
            {keys.toReversed().map((key) => (
              <li key={key.id}>
                <KeyRow signingKey={key} onWithdraw={mayWrite ? () => setWithdrawing(key) : undefined} />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {isCreating && (
        <ActionDialog
          title="New signing key"
          verb="Create key"
          isDanger={false}
          action={createSigningKey}
          message="The key was created."
          onDone={fetched.reload}
          onClose={() => setCreating(false)}
        >
          <p>
            The key is published now and starts signing once every cached key set includes it. Tokens of the
            previous key stay valid until they expire. No session ends.
          </p>
        </ActionDialog>
      )}
      {withdrawing && (
        <ActionDialog
          title="Withdraw this signing key?"
          confirmation={confirmationWord('withdraw', withdrawing.id)}
          verb="Withdraw"
          action={() => withdrawSigningKey(withdrawing.id)}
          message="The key was withdrawn."
          onDone={fetched.reload}
          onClose={() => setWithdrawing(undefined)}
        >
          <p>
            Every token signed by <code>{withdrawing.id}</code> is rejected within one second. This cannot be
            undone. Do it if the key or its tokens may have been compromised.
          </p>
          {withdrawing.state === 'signs' && (
            <p>
              It is the current signing key:{' '}
              <strong>every client needs a new token, and this session ends too.</strong> Another key takes
              over immediately.
            </p>
          )}
        </ActionDialog>
      )}
    </section>
  );
}

/** Characters of an ID that distinguish keys. */
const SHOWN = 4;

interface KeyRowProps {
  readonly signingKey: SigningKey;
  readonly onWithdraw: (() => void) | undefined;
}

function KeyRow({ signingKey, onWithdraw }: KeyRowProps) {
  const { id, state, signs_from, withdrawn_at } = signingKey;
  const [badge, words, sentence] = STATES[state];
  return (
    <div class="row key-row">
      <div class="row-main">
        <Identifier id={id} what="the key ID" />
        <span class="faint small">
          {sentence} · {withdrawn_at === null ? 'from ' : ''}
          <Timestamp at={withdrawn_at ?? signs_from} />
        </span>
      </div>
      <span class={badge}>{words}</span>
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
