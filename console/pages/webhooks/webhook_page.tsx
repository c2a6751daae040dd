import { DESCRIBED } from 'authrealm:described';
import { useId, useState } from 'preact/hooks';
import { type FirstWish, type Webhook, type Wish, webhooks } from '../../api/admin.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { AllOrSome, RealmsField, TextField } from '../../form/fields.tsx';
import { type Missing, useSaying } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Copy, Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { AdministeredPage, RealmsFact } from '../managed/managed_page.tsx';
import { Deliveries } from './deliveries.tsx';

export const WEBHOOK: Kind<Wish, FirstWish> = {
  what: 'webhook',
  title: 'Webhook',
  home: { label: 'Webhooks', href: href('webhooks') },
  collection: webhooks,
  blank: {
    name: '',
    url: '',
    events: '*',
    realms: '*',
    with_data: false,
    events_max: 1,
    skipped_client: null,
  },
  labels: {
    name: 'Name',
    url: 'URL',
    events: 'Events',
    realms: 'Realms',
    with_data: 'Include the record',
    events_max: 'Events per message',
    skipped_client: 'Skipped client',
  },
  Form: WebhookForm,
  words: {
    of: {
      rotate:
        'gets a new secret, which is shown once. Until the old one expires, messages are signed with both.',
      disable:
        'receives no messages while disabled. Missed changes are delivered when it is enabled again, as long as the feed retains them.',
      enable: 'receives messages again, from where it stopped.',
      delete:
        'will be deleted permanently, with its deliveries and dead letters. Pending changes are never delivered.',
    },
    isOn: 'enabled',
    isOff: 'disabled: missed changes are delivered later',
    turnedOn: 'The webhook was enabled.',
    before: 'also signs until',
  },
};

/** A webhook target, what was sent to it, and what was given up. */
export function WebhookPage({ parameters: { webhook = '' } }: PageProps) {
  const asked = useAsked((signal) => webhooks.read(webhook, signal), [webhook]);
  return (
    <AdministeredPage
      kind={WEBHOOK}
      asked={asked}
      facts={({ record }) => <WebhookFacts webhook={record} />}
      rest={({ record }) => <Deliveries webhook={record} />}
    />
  );
}

function WebhookFacts({ webhook }: { readonly webhook: Webhook }) {
  const { id, url, events, realms, events_max: most, with_data: hasData, skipped_client: skipped } = webhook;
  return (
    <>
      <Fact label="URL">
        <Said text={url} /> <Copy text={url} what="the URL" />
      </Fact>
      <Fact label="ID">
        <Identifier id={id} what="the webhook ID" />
      </Fact>
      <Fact label="Events">
        {events === '*' ? (
          'every event'
        ) : (
          <ul>
            {events.map((event) => (
              <li key={event}>{eventWords(event)}</li>
            ))}
          </ul>
        )}
      </Fact>
      <RealmsFact realms={realms} />
      <Fact label="Messages">
        {most === 1 ? 'one event each' : `lists of at most ${most} events`},{' '}
        {hasData ? 'with the record' : 'without the record'}
      </Fact>
      {skipped !== null && (
        <Fact label="Skips">
          what <Said text={skipped} /> changes
        </Fact>
      )}
    </>
  );
}

/** Where a target is, what it is told, and how. */
function WebhookForm({ begin, verb, save, onCancel }: FormProps<Wish, FirstWish>) {
  const [from, setFrom] = useState<FirstWish['from']>('present');
  const { said, change, about, problem, isBusy, send, form } = useSaying({
    begin,
    missingOf: missingWebhookFields,
    save: (wish) => save({ ...wish, from }),
  });
  const id = useId();
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={said.name}
        complaint={about('name')}
        isRequired
        onText={(name) => change({ name })}
      />
      <TextField
        label="URL"
        value={said.url}
        complaint={about('url')}
        hint="For example https://search.example/hooks/authrealm. Changes are sent there by POST."
        inputMode="url"
        isRequired
        onText={(url) => change({ url: url.trim() })}
      />
      <EventsField
        events={said.events}
        complaint={about('events')}
        onEvents={(events) => change({ events })}
      />
      <RealmsField
        realms={said.realms}
        complaint={about('realms')}
        onRealms={(realms) => change({ realms })}
      />
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={said.with_data}
            onChange={({ currentTarget }) => change({ with_data: currentTarget.checked })}
          />
          Include the record
        </label>
        <p class="hint">Messages then contain personal data: names, e-mail addresses, usernames, subjects.</p>
      </div>
      <TextField
        label="Maximum events per message"
        value={Number.isNaN(said.events_max) ? '' : String(said.events_max)}
        complaint={about('events_max')}
        hint={`1 to ${DESCRIBED.limits.webhookEventsMax}. With 1, each message is a single event; otherwise it is a list, which copes with many writes.`}
        inputMode="numeric"
        isRequired
        onText={(text) => change({ events_max: /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN })}
      />
      <TextField
        label="Skip changes made by this client"
        value={said.skipped_client ?? ''}
        complaint={about('skipped_client')}
        hint="The ID of a client that both writes here and receives at this target."
        onText={(text) => change({ skipped_client: text.trim() === '' ? null : text.trim() })}
      />
      {verb === 'create' && (
        <div class="field">
          <label for={`${id}-from`}>Start with</label>
          <select
            id={`${id}-from`}
            value={from}
            onChange={({ currentTarget }) => setFrom(currentTarget.value === 'oldest' ? 'oldest' : 'present')}
          >
            <option value="present">changes from now on</option>
            <option value="oldest">everything the feed retains</option>
          </select>
        </div>
      )}
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isOff={isBusy} onCancel={onCancel} />
    </form>
  );
}

function missingWebhookFields({ name, url, events, realms, events_max: most }: Wish): Missing {
  const isNumber = Number.isInteger(most) && most >= 1 && most <= DESCRIBED.limits.webhookEventsMax;
  return {
    ...(name.trim() === '' ? { name: 'This field is required' } : {}),
    ...(url === '' ? { url: 'This field is required' } : {}),
    ...(events.length === 0 ? { events: 'Select at least one, or choose every event' } : {}),
    ...(realms.length === 0 ? { realms: 'Select at least one, or choose all' } : {}),
    ...(isNumber ? {} : { events_max: `A whole number from 1 to ${DESCRIBED.limits.webhookEventsMax}` }),
  };
}

type Events = Wish['events'];

interface EventsFieldProps {
  readonly events: Events;
  readonly complaint: string;
  readonly onEvents: (events: Events) => void;
}

/** Every event, or some of them. */
function EventsField({ events, complaint, onEvents }: EventsFieldProps) {
  return (
    <AllOrSome
      legend="Events"
      all="Every event, including those of future releases"
      some="Selected events"
      value={events}
      complaint={complaint}
      onValue={onEvents}
    >
      {(some, choose) => (
        <>
          <div class="choices-list">
            {DESCRIBED.events.map((event) => (
              <label key={event} class="check">
                <input
                  type="checkbox"
                  checked={some.includes(event)}
                  onChange={({ currentTarget }) =>
                    choose(
                      DESCRIBED.events.filter((each) =>
                        each === event ? currentTarget.checked : some.includes(each),
                      ),
                    )
                  }
                />
                {eventWords(event)}
              </label>
            ))}
          </div>
          <p class="hint">Every target receives user erasures.</p>
        </>
      )}
    </AllOrSome>
  );
}

/** `user-authentication-info.updated` is `user updated`. */
function eventWords(event: string): string {
  const dot = event.lastIndexOf('.');
  return `${nounOf(event.slice(0, dot)).one} ${event.slice(dot + 1)}`;
}
