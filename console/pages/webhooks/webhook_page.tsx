import { useAsked } from '../../api/answers.ts';
import { type Webhook, webhooks } from '../../api/webhooks.ts';
import type { PageProps } from '../../layout/page.ts';
import { Copy, Identifier } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Said } from '../../parts/said.tsx';
import { AdministeredPage, RealmsFact } from '../administered/page.tsx';
import { Deliveries } from './deliveries.tsx';
import { eventWords } from './events_field.tsx';
import { WEBHOOK } from './webhook_kind.ts';

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
