import { useMemo, useState } from 'preact/hooks';
import { type Webhook, webhookPages } from '../../api/admin.ts';
import { PageHead } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { PagedList } from '../../parts/long_list.tsx';
import { EmptyState } from '../../parts/notices.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { CreateManagedButton } from '../managed/managed_page.tsx';
import { WEBHOOK } from './webhook_page.tsx';

/** The list of webhook targets. */
export function WebhooksPage() {
  const [round, setRound] = useState(0);
  const read = useMemo(() => webhookPages(), [round]);
  return (
    <>
      <PageHead
        title="Webhooks"
        actions={<CreateManagedButton kind={WEBHOOK} onCreated={() => setRound(round + 1)} />}
      />
      <p class="prose">
        Servers that receive changes. Each message is signed; failed messages are retried for about a day.
      </p>
      <PagedList
        label="Webhooks"
        read={read}
        row={(webhook) => <WebhookRow webhook={webhook} />}
        empty={
          <EmptyState icon="webhook" title="No webhooks yet">
            <p>Create one for each server that should receive changes as they happen.</p>
          </EmptyState>
        }
      />
    </>
  );
}

function WebhookRow({ webhook }: { readonly webhook: Webhook }) {
  const { id, name, url, is_disabled, events } = webhook;
  return (
    <a class="row" href={href('webhooks', id)}>
      <Icon name="webhook" />
      <span class="row-main">
        <span>
          <UntrustedText text={name} />
        </span>
        <span class="faint">
          <UntrustedText text={url} />
        </span>
      </span>
      {is_disabled && <span class="badge badge-warn">disabled</span>}
      <span class="row-side faint small">
        {events === '*' ? 'every event' : `${events.length} ${events.length === 1 ? 'event' : 'events'}`}
      </span>
    </a>
  );
}
