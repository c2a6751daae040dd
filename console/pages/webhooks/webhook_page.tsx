import { useState } from 'preact/hooks';
import { ADMIN } from '../../api/administration.ts';
import { useAsked } from '../../api/answers.ts';
import { readWebhook, type Webhook } from '../../api/webhooks.ts';
import { PageHead } from '../../layout/head.tsx';
import type { PageProps } from '../../layout/page.ts';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Copy, Identifier } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { may, session } from '../../session/session.ts';
import { Deliveries } from './deliveries.tsx';
import { eventWords } from './events_field.tsx';
import { type WebhookAct, WebhookDialog } from './webhook_dialogs.tsx';

/** A webhook target, what was sent to it, and what was given up. */
export function WebhookPage({ parameters: { webhook: id = '' } }: PageProps) {
  const state = useObserved(session);
  const asked = useAsked((signal) => readWebhook(id, signal), [id]);
  const [act, setAct] = useState<WebhookAct>();
  const { answer } = asked;
  return (
    <>
      <PageHead
        title={answer?.webhook.name ?? 'Webhook'}
        heading={answer ? <Said text={answer.webhook.name} /> : undefined}
        above={[{ label: 'Webhooks', href: href('webhooks') }]}
        actions={answer && may(state, ADMIN) && <Actions webhook={answer.webhook} onAct={setAct} />}
      />
      <Answered asked={asked}>
        {({ webhook }) => (
          <>
            <WebhookFacts webhook={webhook} />
            <Deliveries webhook={webhook} />
          </>
        )}
      </Answered>
      {act && answer && (
        <WebhookDialog act={act} tagged={answer} onClose={() => setAct(undefined)} onChanged={asked.again} />
      )}
    </>
  );
}

interface ActionsProps {
  readonly webhook: Webhook;
  readonly onAct: (act: WebhookAct) => void;
}

function Actions({ webhook: { is_disabled: isOff }, onAct }: ActionsProps) {
  return (
    <>
      <button type="button" class="button" onClick={() => onAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      <button type="button" class="button" onClick={() => onAct('rotate')}>
        <Icon name="history" /> New secret
      </button>
      <button type="button" class="button" onClick={() => onAct(isOff ? 'enable' : 'disable')}>
        <Icon name={isOff ? 'done' : 'close'} /> {isOff ? 'Enable' : 'Disable'}
      </button>
      <button type="button" class="button" onClick={() => onAct('delete')}>
        <Icon name="remove" /> Delete
      </button>
    </>
  );
}

function WebhookFacts({ webhook }: { readonly webhook: Webhook }) {
  const { id, url, events, realms, is_disabled: isOff, previous_secret_expires_at: previous } = webhook;
  const { events_max: most, with_data: hasData, skipped_client: skipped, meta } = webhook;
  return (
    <section class="card" aria-label="This webhook">
      <dl class="facts">
        <Fact label="State">
          {isOff ? (
            <span class="badge badge-warn">disabled: it is told later what it misses</span>
          ) : (
            <span class="badge badge-good">told as things change</span>
          )}
        </Fact>
        <Fact label="URL">
          <Said text={url} /> <Copy text={url} what="the URL" />
        </Fact>
        <Fact label="ID">
          <Identifier id={id} what="the webhook ID" />
        </Fact>
        <Fact label="Events">{events === '*' ? 'every event' : <List items={events.map(eventWords)} />}</Fact>
        <Fact label="Realms">{realms === '*' ? 'all' : <Realms ids={realms} />}</Fact>
        <Fact label="Messages">
          {most === 1 ? 'one event each' : `lists of at most ${most} events`},{' '}
          {hasData ? 'with the record' : 'without the record'}
        </Fact>
        {skipped !== null && (
          <Fact label="Leaves out">
            what <Said text={skipped} /> changes
          </Fact>
        )}
        {previous !== null && (
          <Fact label="Old secret">
            signs as well until <Instant at={previous} />
          </Fact>
        )}
        <Fact label="Created">
          <Instant at={meta.created_at} />
        </Fact>
        <Fact label="Changed">
          <Instant at={meta.updated_at} />
        </Fact>
      </dl>
    </section>
  );
}

function List({ items }: { readonly items: readonly string[] }) {
  return (
    <ul>
      {items.map((item) => (
        <li key={item}>{item}</li>
      ))}
    </ul>
  );
}

function Realms({ ids }: { readonly ids: readonly string[] }) {
  return (
    <ul>
      {ids.map((id) => (
        <li key={id}>
          <a href={href('realms', id)}>
            <code>{id}</code>
          </a>
        </li>
      ))}
    </ul>
  );
}
