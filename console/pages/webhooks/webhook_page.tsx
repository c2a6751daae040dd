import { SCHEMA } from 'authrealm:schema';
import { useState } from 'preact/hooks';
import { type NewWebhookInput, type WebhookInput, webhooks } from '../../api/admin.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { AllOrSomeField, Checks, RealmsField, SelectField, TextField } from '../../form/fields.tsx';
import { missingSentence } from '../../form/rules.ts';
import { type BrokenRules, useForm } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { CopyButton, Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { eventLabel, memberLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { ManagedPage, RealmsFact } from '../managed/managed_page.tsx';
import { Deliveries } from './deliveries.tsx';

export const WEBHOOK: Kind<WebhookInput, NewWebhookInput> = {
  what: 'webhook',
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
    isEnabled: 'enabled',
    isDisabled: 'disabled: missed changes are delivered later',
    previousSecret: 'also signs until',
  },
};

/** The page of a webhook target. */
export function WebhookPage({ parameters: { webhook = '' } }: PageProps) {
  const fetched = useFetch((signal) => webhooks.read(webhook, signal), [webhook]);
  return (
    <ManagedPage
      kind={WEBHOOK}
      fetched={fetched}
      facts={({
        record: { id, url, events, realms, events_max: maximum, with_data: hasData, skipped_client: skipped },
      }) => (
        <>
          <Fact label="URL">
            <UntrustedText text={url} /> <CopyButton text={url} what="the URL" />
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
                  <li key={event}>{eventLabel(event)}</li>
                ))}
              </ul>
            )}
          </Fact>
          <RealmsFact realms={realms} />
          <Fact label="Messages">
            {maximum === 1 ? 'one event each' : `lists of at most ${maximum} events`},{' '}
            {hasData ? 'with the record' : 'without the record'}
          </Fact>
          {skipped !== null && (
            <Fact label="Skips">
              changes made by <UntrustedText text={skipped} />
            </Fact>
          )}
        </>
      )}
      rest={({ record }) => <Deliveries webhook={record} />}
    />
  );
}

/** The form of a webhook target. */
function WebhookForm({ initial, verb, save, onCancel }: FormProps<WebhookInput, NewWebhookInput>) {
  const [from, setFrom] = useState<NewWebhookInput['from']>('present');
  const { input, change, sentenceOf, problem, isBusy, send, form } = useForm({
    initial,
    brokenRulesOf: brokenWebhookRules,
    save: (webhook) => save({ ...webhook, from }),
  });
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={input.name}
        error={sentenceOf('name', memberLabel('name'))}
        isRequired
        onText={(name) => change({ name })}
      />
      <TextField
        label="URL"
        value={input.url}
        error={sentenceOf('url', memberLabel('url'))}
        hint="For example https://search.example/hooks/authrealm. Changes are sent there by POST."
        inputMode="url"
        isRequired
        onText={(url) => change({ url: url.trim() })}
      />
      <AllOrSomeField
        legend="Events"
        all="Every event, including those of future releases"
        selected="Selected events"
        value={input.events}
        error={sentenceOf('events', memberLabel('events'))}
        onValue={(events) => change({ events })}
      >
        {(selected, onSelect) => (
          <>
            <Checks
              class="choices-list"
              options={SCHEMA.events.map((event) => ({ id: event, label: eventLabel(event) }))}
              {...{ selected, onSelect }}
            />
            <p class="hint">Every target receives user erasures.</p>
          </>
        )}
      </AllOrSomeField>
      <RealmsField
        realms={input.realms}
        error={sentenceOf('realms', memberLabel('realms'))}
        onRealms={(realms) => change({ realms })}
      />
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={input.with_data}
            onChange={({ currentTarget }) => change({ with_data: currentTarget.checked })}
          />
          Include the record
        </label>
        <p class="hint">Messages then contain personal data: names, e-mail addresses, usernames, subjects.</p>
      </div>
      <TextField
        label="Maximum events per message"
        value={Number.isNaN(input.events_max) ? '' : String(input.events_max)}
        error={sentenceOf('events_max', memberLabel('events_max'))}
        hint={`1 to ${SCHEMA.limits.webhookEventsMax}. With 1, each message is a single event; otherwise it is a list, which suits a high rate of writes.`}
        inputMode="numeric"
        isRequired
        onText={(text) => change({ events_max: /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN })}
      />
      <TextField
        label="Skip changes made by this client"
        value={input.skipped_client ?? ''}
        error={sentenceOf('skipped_client', memberLabel('skipped_client'))}
        hint="The ID of a client that both writes here and receives messages at this target."
        onText={(text) => change({ skipped_client: text.trim() === '' ? null : text.trim() })}
      />
      {verb === 'create' && (
        <SelectField
          label="Start with"
          value={from}
          options={[
            { id: 'present', label: 'changes from now on' },
            { id: 'oldest', label: 'everything the feed retains' },
          ]}
          onValue={(value) => setFrom(value === 'oldest' ? 'oldest' : 'present')}
        />
      )}
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}

function brokenWebhookRules({ name, url, events, realms, events_max: maximum }: WebhookInput): BrokenRules {
  const isNumber = Number.isInteger(maximum) && maximum >= 1 && maximum <= SCHEMA.limits.webhookEventsMax;
  return {
    ...(name.trim() === '' ? { name: missingSentence('Name') } : {}),
    ...(url === '' ? { url: missingSentence('URL') } : {}),
    ...(events.length === 0 ? { events: 'Select at least one event, or choose every event.' } : {}),
    ...(realms.length === 0 ? { realms: 'Select at least one realm, or choose all.' } : {}),
    ...(isNumber ? {} : { events_max: `Enter a whole number from 1 to ${SCHEMA.limits.webhookEventsMax}.` }),
  };
}
