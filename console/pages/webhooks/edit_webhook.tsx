import { useState } from 'preact/hooks';
import { problemOf } from '../../api/problem.ts';
import type { Tagged } from '../../api/records.ts';
import {
  readWebhook,
  type TaggedWebhook,
  updateWebhook,
  type Webhook,
  type Wish,
} from '../../api/webhooks.ts';
import type { Field } from '../../description.ts';
import { Comparison } from '../../form/comparison.tsx';
import { valuesOf } from '../../form/values.ts';
import { announce } from '../../parts/announcer.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import type { WebhookDialogProps } from './webhook_dialogs.tsx';
import { WebhookForm } from './webhook_form.tsx';

interface Conflict {
  readonly mine: Wish;
  readonly theirs: TaggedWebhook;
}

/** Changes a target. Where another one was faster, both are shown before anything is saved. */
export function EditWebhook({ tagged, onClose, onChanged }: WebhookDialogProps) {
  const [from, setFrom] = useState(tagged);
  const [conflict, setConflict] = useState<Conflict>();
  const { id } = tagged.webhook;
  const send = async (mine: Wish, etag: string | undefined) => {
    await updateWebhook(id, changed(from.webhook, mine), etag);
    announce('Saved.');
    onChanged();
    onClose();
  };
  const meet = async (mine: Wish) => setConflict({ mine, theirs: await readWebhook(id) });
  const save = async (mine: Wish) => {
    try {
      await send(mine, from.etag);
    } catch (error) {
      if (problemOf(error).kind !== 'stale') throw error;
      await meet(mine);
    }
  };
  return (
    <Dialog title={conflict ? 'Somebody else was faster' : 'Edit webhook'} onClose={onClose}>
      {conflict ? (
        <Comparison
          fields={FIELDS}
          before={valuesOf(FIELDS, recordOf(from.webhook))}
          mine={valuesOf(FIELDS, textsOf(conflict.mine))}
          theirs={{ record: recordOf(conflict.theirs.webhook), etag: conflict.theirs.etag }}
          overwrite={() => send(conflict.mine, conflict.theirs.etag)}
          onStale={() => meet(conflict.mine)}
          takeTheirs={() => {
            setFrom(conflict.theirs);
            setConflict(undefined);
          }}
        />
      ) : (
        <WebhookForm
          key={from.etag}
          begin={wishOf(from.webhook)}
          verb="update"
          save={save}
          onCancel={onClose}
        />
      )}
    </Dialog>
  );
}

const MEMBERS = [
  ['name', 'Name', 'text'],
  ['url', 'URL', 'text'],
  ['events', 'Events', 'texts'],
  ['realms', 'Realms', 'texts'],
  ['with_data', 'Send the record along', 'flag'],
  ['events_max', 'Events of one message', 'text'],
  ['skipped_client', 'Client left out', 'text'],
] as const;

function wishOf(webhook: Webhook): Wish {
  return Object.fromEntries(MEMBERS.map(([member]) => [member, webhook[member]])) as unknown as Wish;
}

/** What differs from how the form began. */
function changed(before: Webhook, mine: Wish): Partial<Wish> {
  const isOther = (member: keyof Wish) => JSON.stringify(before[member]) !== JSON.stringify(mine[member]);
  return Object.fromEntries(
    MEMBERS.flatMap(([member]) => (isOther(member) ? [[member, mine[member]]] : [])),
  ) as Partial<Wish>;
}

function recordOf({ meta, ...webhook }: Webhook): Tagged['record'] {
  return { ...webhook, ...textsOf(webhook), ...meta };
}

/** A comparison is of texts. */
function textsOf({ events_max: most, ...wish }: Wish) {
  return { ...wish, events_max: String(most) };
}

const FIELDS: readonly Field[] = MEMBERS.map(([name, label, kind]) => ({
  ...{ name, label, kind, within: 'data', saidBy: 'anyone', choices: [] },
  ...{ isShown: true, isRequired: true, isNullable: false, isSettled: false },
}));
