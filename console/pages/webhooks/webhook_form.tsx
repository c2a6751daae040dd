import { DESCRIBED } from 'authrealm:described';
import { useId, useState } from 'preact/hooks';
import type { FirstWish, Wish } from '../../api/webhooks.ts';
import { RealmsField } from '../../form/realms_field.tsx';
import { type Missing, useSaying } from '../../form/saying.ts';
import { TextField } from '../../form/text_field.tsx';
import { FormActions } from '../../parts/form_actions.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import type { FormProps } from '../administered/kind.ts';
import { EventsField } from './events_field.tsx';

/** Where a target is, what it is told, and how. */
export function WebhookForm({ begin, verb, save, onCancel }: FormProps<Wish, FirstWish>) {
  const [from, setFrom] = useState<FirstWish['from']>('present');
  const { said, change, about, problem, isBusy, send, form } = useSaying({
    begin,
    missingOf,
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

function missingOf({ name, url, events, realms, events_max: most }: Wish): Missing {
  const isNumber = Number.isInteger(most) && most >= 1 && most <= DESCRIBED.limits.webhookEventsMax;
  return {
    ...(name.trim() === '' ? { name: 'This has to be said' } : {}),
    ...(url === '' ? { url: 'This has to be said' } : {}),
    ...(events.length === 0 ? { events: 'Choose at least one, or every event' } : {}),
    ...(realms.length === 0 ? { realms: 'Name at least one, or choose all' } : {}),
    ...(isNumber ? {} : { events_max: `A whole number from 1 to ${DESCRIBED.limits.webhookEventsMax}` }),
  };
}
