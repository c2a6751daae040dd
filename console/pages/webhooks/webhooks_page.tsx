import { useMemo, useState } from 'preact/hooks';
import { ADMIN } from '../../api/administration.ts';
import {
  createWebhook,
  type IssuedWebhook,
  type Webhook,
  type Wish,
  webhookPages,
} from '../../api/webhooks.ts';
import { PageHead } from '../../layout/head.tsx';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { Empty } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { SecretDialog } from '../../parts/secret_dialog.tsx';
import { may, session } from '../../session/session.ts';
import { WebhookForm } from './webhook_form.tsx';

const NEW: Wish = {
  name: '',
  url: '',
  events: '*',
  realms: '*',
  with_data: false,
  events_max: 1,
  skipped_client: null,
};

/** Who is told what changes. */
export function WebhooksPage() {
  const state = useObserved(session);
  const [round, setRound] = useState(0);
  const [isMaking, setMaking] = useState(false);
  const [issued, setIssued] = useState<IssuedWebhook>();
  const read = useMemo(() => webhookPages(), [round]);
  const button = may(state, ADMIN) && (
    <button type="button" class="button button-main" onClick={() => setMaking(true)}>
      <Icon name="add" /> New webhook
    </button>
  );
  return (
    <>
      <PageHead title="Webhooks" actions={button} />
      <p class="page-lead">
        Servers that are told what changes, each message signed and sent again until it is received.
      </p>
      <LongList
        label="Webhooks"
        read={read}
        row={(webhook) => <WebhookRow webhook={webhook} />}
        empty={
          <Empty icon="webhook" title="No webhook yet">
            <p>Make one for each server that is to hear of changes as they happen.</p>
          </Empty>
        }
      />
      {isMaking && (
        <Dialog title="New webhook" onClose={() => setMaking(false)}>
          <WebhookForm
            begin={NEW}
            verb="create"
            onCancel={() => setMaking(false)}
            save={async (wish, from) => {
              setIssued(await createWebhook({ ...wish, from }));
              setMaking(false);
              setRound(round + 1);
            }}
          />
        </Dialog>
      )}
      {issued && <SecretDialog what="webhook" issued={issued} onClose={() => setIssued(undefined)} />}
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
          <Said text={name} />
        </span>
        <span class="faint">
          <Said text={url} />
        </span>
      </span>
      {is_disabled && <span class="badge badge-warn">disabled</span>}
      <span class="row-side faint small">
        {events === '*' ? 'every event' : `${events.length} ${events.length === 1 ? 'event' : 'events'}`}
      </span>
    </a>
  );
}
