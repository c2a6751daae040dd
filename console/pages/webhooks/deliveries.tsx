import { useEffect, useMemo, useState } from 'preact/hooks';
import {
  ADMIN,
  type DeadLetter,
  type Delivery,
  deadLetterPages,
  deliveryPages,
  redeliver,
  type Webhook,
} from '../../api/admin.ts';
import type { ReadPage } from '../../api/list_page.ts';
import { Told, useAct } from '../../form/use_action.tsx';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Empty } from '../../parts/notices.tsx';
import { Instant } from '../../parts/timestamp.tsx';
import { LongList } from '../../parts/virtual_list.tsx';
import { may, session } from '../../session/session.ts';

const SENT = ['Nothing to redeliver.', 'Redelivering 1 message.', 'Redelivering # messages.'];
/** What was sent appears within seconds. */
const SEEN_MS = [1_000, 3_000, 6_000];

/** What was sent to a target, and what it was not told; what was given up can be sent again. */
export function Deliveries({ webhook }: { readonly webhook: Webhook }) {
  const state = useObserved(session);
  const [round, setRound] = useState(0);
  const [sent, setSent] = useState(0);
  const again = () => setRound((before) => before + 1);
  useEffect(() => {
    if (sent === 0) return;
    const timers = SEEN_MS.map((ms) => setTimeout(again, ms));
    return () => timers.forEach(clearTimeout);
  }, [sent]);
  const { isBusy, problem, run } = useAct(() => setSent((before) => before + 1));
  const send = (letter: string) =>
    run(async () => {
      const count = await redeliver(webhook.id, letter);
      announce(SENT[Math.min(count, 2)]?.replace('#', count.toLocaleString()) ?? '');
    });
  const deliveries = useMemo(() => deliveryPages(webhook.id), [webhook.id, round]);
  const [hasLetters, setHasLetters] = useState(false);
  const letters = useMemo((): ReadPage<DeadLetter> => {
    const read = deadLetterPages(webhook.id);
    return async (cursor, signal) => {
      const page = await read(cursor, signal);
      setHasLetters(cursor !== '' || page.items.length > 0);
      return page;
    };
  }, [webhook.id, round]);
  return (
    <>
      <section class="section" aria-label="Deliveries">
        <div class="card-head">
          <h2>Deliveries</h2>
          <button type="button" class="text-button" onClick={again}>
            <Icon name="history" /> Refresh
          </button>
        </div>
        <LongList
          label="Deliveries, newest first"
          read={deliveries}
          row={(delivery) => <DeliveryRow delivery={delivery} />}
          empty={
            <Empty icon="webhook" title="No deliveries yet">
              <p>Each attempt is listed here with the response of the server and its duration.</p>
            </Empty>
          }
        />
      </section>
      <section class="section" aria-label="Dead letters">
        <div class="card-head">
          <h2>Dead letters</h2>
          {hasLetters && may(state, ADMIN) && (
            <button type="button" class="button" disabled={isBusy} onClick={() => send('*')}>
              <Icon name="history" /> Redeliver all
            </button>
          )}
        </div>
        <Told problem={problem} />
        <LongList
          label="Dead letters"
          read={letters}
          row={(letter) => <LetterRow letter={letter} send={may(state, ADMIN) ? send : undefined} />}
          empty={<p class="faint">None: every message was received or is still being retried.</p>}
        />
      </section>
    </>
  );
}

const OUTCOMES: Readonly<Record<string, readonly [badge: string, words: string]>> = {
  delivered: ['badge badge-good', 'delivered'],
  refused: ['badge badge-danger', 'refused'],
  unreachable: ['badge badge-danger', 'no response'],
  expired: ['badge badge-warn', 'expired'],
};

function DeliveryRow({ delivery }: { readonly delivery: Delivery }) {
  const { outcome, status, duration_ms: duration, attempt, at } = delivery;
  const [badge, words] = OUTCOMES[outcome] ?? ['badge', outcome];
  return (
    <div class="row delivery-row">
      <span class="delivery-outcome">
        <span class={badge}>
          {words}
          {status !== null && ` ${status}`}
        </span>
      </span>
      <span class="row-main">
        <span>
          <Changes told={delivery} />
        </span>
        <span class="faint">
          attempt {attempt}, {duration.toLocaleString()} ms
        </span>
      </span>
      <span class="row-side faint small">
        <Instant at={at} />
      </span>
    </div>
  );
}

const STATES: Readonly<Record<DeadLetter['state'], readonly [badge: string, words: string]>> = {
  dead: ['badge badge-danger', 'given up'],
  waiting: ['badge badge-warn', 'redelivering'],
  redelivered: ['badge badge-good', 'redelivered'],
};

interface LetterRowProps {
  readonly letter: DeadLetter;
  readonly send: ((letter: string) => void) | undefined;
}

function LetterRow({ letter, send }: LetterRowProps) {
  const { id, state, attempts, at, redelivered_at: received, first_seq: first } = letter;
  const [badge, words] = STATES[state];
  return (
    <div class="row delivery-row">
      <span class="delivery-outcome">
        <span class={badge}>{words}</span>
      </span>
      <span class="row-main">
        <span>
          <Changes told={letter} />
        </span>
        <span class="faint">{attempts > 0 && `after ${attempts} attempts`}</span>
      </span>
      {state === 'dead' && send && (
        <button
          type="button"
          class="text-button"
          aria-label={`Redeliver: change ${first}`}
          onClick={() => send(id)}
        >
          <Icon name="history" /> Redeliver
        </button>
      )}
      <span class="row-side faint small">
        <Instant at={received ?? at} />
      </span>
    </div>
  );
}

/** Which changes a message tells, where they can be looked at. */
function Changes({ told }: { readonly told: Pick<Delivery, 'realm_id' | 'first_seq' | 'last_seq'> }) {
  const { realm_id: realm, first_seq: first, last_seq: last } = told;
  const query = new URLSearchParams({ realm, entry: String(first) });
  return (
    <a href={`${href('changes')}?${query}`}>
      {first === last
        ? `Change ${first.toLocaleString()}`
        : `Changes ${first.toLocaleString()} to ${last.toLocaleString()}`}
    </a>
  );
}
