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
import { ActionError, useAction } from '../../form/use_action.tsx';
import { href } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PagedList } from '../../parts/long_list.tsx';
import { EmptyState } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import { hasScope, session } from '../../session/session.ts';

const REDELIVERY_MESSAGES = ['Nothing to redeliver.', 'Redelivering 1 message.', 'Redelivering # messages.'];
/** Redelivered messages appear within seconds. */
const REFRESH_AFTER_MS = [1_000, 3_000, 6_000];

/** Deliveries and dead letters of a target. */
export function Deliveries({ webhook }: { readonly webhook: Webhook }) {
  const state = useObservable(session);
  const [round, setRound] = useState(0);
  const [sent, setSent] = useState(0);
  const reload = () => setRound((before) => before + 1);
  useEffect(() => {
    if (sent === 0) return;
    const timers = REFRESH_AFTER_MS.map((ms) => setTimeout(reload, ms));
    return () => timers.forEach(clearTimeout);
  }, [sent]);
  const { isBusy, problem, run } = useAction(() => setSent((before) => before + 1));
  const send = (deadLetter: string) =>
    run(async () => {
      const count = await redeliver(webhook.id, deadLetter);
      announce(REDELIVERY_MESSAGES[Math.min(count, 2)]?.replace('#', count.toLocaleString()) ?? '');
    });
  const deliveries = useMemo(() => deliveryPages(webhook.id), [webhook.id, round]);
  const [hasDeadLetters, setHasDeadLetters] = useState(false);
  const deadLetters = useMemo((): ReadPage<DeadLetter> => {
    const read = deadLetterPages(webhook.id);
    return async (cursor, signal) => {
      const page = await read(cursor, signal);
      setHasDeadLetters(cursor !== '' || page.items.length > 0);
      return page;
    };
  }, [webhook.id, round]);
  return (
    <>
      <section class="section" aria-label="Deliveries">
        <div class="card-head">
          <h2>Deliveries</h2>
          <button type="button" class="text-button" onClick={reload}>
            <Icon name="history" /> Refresh
          </button>
        </div>
        <PagedList
          label="Deliveries, newest first"
          read={deliveries}
          row={(delivery) => <DeliveryRow delivery={delivery} />}
          empty={
            <EmptyState icon="webhook" title="No deliveries yet">
              <p>Each attempt is listed here with the response of the server and its duration.</p>
            </EmptyState>
          }
        />
      </section>
      <section class="section" aria-label="Dead letters">
        <div class="card-head">
          <h2>Dead letters</h2>
          {hasDeadLetters && hasScope(state, ADMIN) && (
            <button type="button" class="button" disabled={isBusy} onClick={() => send('*')}>
              <Icon name="history" /> Redeliver all
            </button>
          )}
        </div>
        <ActionError problem={problem} />
        <PagedList
          label="Dead letters"
          read={deadLetters}
          row={(deadLetter) => (
            <DeadLetterRow deadLetter={deadLetter} send={hasScope(state, ADMIN) ? send : undefined} />
          )}
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
          <Changes range={delivery} />
        </span>
        <span class="faint">
          attempt {attempt}, {duration.toLocaleString()} ms
        </span>
      </span>
      <span class="row-side faint small">
        <Timestamp at={at} />
      </span>
    </div>
  );
}

const STATES: Readonly<Record<DeadLetter['state'], readonly [badge: string, words: string]>> = {
  dead: ['badge badge-danger', 'given up'],
  waiting: ['badge badge-warn', 'redelivering'],
};

interface DeadLetterRowProps {
  readonly deadLetter: DeadLetter;
  readonly send: ((deadLetter: string) => void) | undefined;
}

function DeadLetterRow({ deadLetter, send }: DeadLetterRowProps) {
  const { id, state, attempts, at, first_seq: first } = deadLetter;
  const [badge, words] = STATES[state];
  return (
    <div class="row delivery-row">
      <span class="delivery-outcome">
        <span class={badge}>{words}</span>
      </span>
      <span class="row-main">
        <span>
          <Changes range={deadLetter} />
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
        <Timestamp at={at} />
      </span>
    </div>
  );
}

/** A link to the changes that a message carries. */
function Changes({ range }: { readonly range: Pick<Delivery, 'realm_id' | 'first_seq' | 'last_seq'> }) {
  const { realm_id: realm, first_seq: first, last_seq: last } = range;
  const query = new URLSearchParams({ realm, entry: String(first) });
  return (
    <a href={`${href('changes')}?${query}`}>
      {first === last
        ? `Change ${first.toLocaleString()}`
        : `Changes ${first.toLocaleString()} to ${last.toLocaleString()}`}
    </a>
  );
}
