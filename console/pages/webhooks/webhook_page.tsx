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
    with_data: 'Send the record along',
    events_max: 'Events of one message',
    skipped_client: 'Client left out',
  },
  Form: WebhookForm,
  words: {
    of: {
      rotate: 'gets a new secret, which is shown once. Both sign meanwhile.',
      disable:
        'is told nothing for now. What it misses is sent when it is enabled again, as long as the feed keeps it.',
      enable: 'is told again, from where it was.',
      delete: 'goes for good, with its deliveries and dead letters. What it was not told yet it never is.',
    },
    isOn: 'told as things change',
    isOff: 'disabled: it is told later what it misses',
    turnedOn: 'The webhook is told again.',
    before: 'signs as well until',
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
        <Fact label="Leaves out">
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
        hint="Such as https://search.example/hooks/authrealm. What changes is sent there by POST."
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
          Send the record along
        </label>
        <p class="hint">It then gets personal values: names, e-mail addresses, usernames, subjects.</p>
      </div>
      <TextField
        label="Events of one message at most"
        value={Number.isNaN(said.events_max) ? '' : String(said.events_max)}
        complaint={about('events_max')}
        hint={`1 to ${DESCRIBED.limits.webhookEventsMax}. With 1 they come by themselves, else as a list, which keeps up with many writes.`}
        inputMode="numeric"
        isRequired
        onText={(text) => change({ events_max: /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN })}
      />
      <TextField
        label="Leave out what this client changes"
        value={said.skipped_client ?? ''}
        complaint={about('skipped_client')}
        hint="The ID of a client that writes here and listens there."
        onText={(text) => change({ skipped_client: text.trim() === '' ? null : text.trim() })}
      />
      {verb === 'create' && (
        <div class="field">
          <label for={`${id}-from`}>It begins with</label>
          <select
            id={`${id}-from`}
            value={from}
            onChange={({ currentTarget }) => setFrom(currentTarget.value === 'oldest' ? 'oldest' : 'present')}
          >
            <option value="present">what changes from now on</option>
            <option value="oldest">everything that the feed keeps</option>
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
    ...(name.trim() === '' ? { name: 'This has to be said' } : {}),
    ...(url === '' ? { url: 'This has to be said' } : {}),
    ...(events.length === 0 ? { events: 'Choose at least one, or every event' } : {}),
    ...(realms.length === 0 ? { realms: 'Name at least one, or choose all' } : {}),
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
      all="Every event, also those of later releases"
      some="Only some"
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
          <p class="hint">That a user was erased is told to every target.</p>
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
