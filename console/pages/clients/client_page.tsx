import { useState } from 'preact/hooks';
import { ADMIN } from '../../api/administration.ts';
import { useAsked } from '../../api/answers.ts';
import { type Client, readClient } from '../../api/clients.ts';
import { PageHead } from '../../layout/head.tsx';
import type { PageProps } from '../../layout/page.ts';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { Answered } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { may, session } from '../../session/session.ts';
import { type ClientAct, ClientDialog } from './client_dialogs.tsx';

/** A client: its rights, its last use, and what can be done with it. */
export function ClientPage({ parameters: { client: id = '' } }: PageProps) {
  const state = useObserved(session);
  const asked = useAsked((signal) => readClient(id, signal), [id]);
  const [act, setAct] = useState<ClientAct>();
  const { answer } = asked;
  return (
    <>
      <PageHead
        title={answer?.client.name ?? 'Client'}
        heading={answer ? <Said text={answer.client.name} /> : undefined}
        above={[{ label: 'Clients and keys', href: href('clients') }]}
        actions={answer && may(state, ADMIN) && <Actions client={answer.client} onAct={setAct} />}
      />
      <Answered asked={asked}>
        {({ client, last_used_at }) => <ClientFacts client={client} lastUse={last_used_at} />}
      </Answered>
      {act && answer && (
        <ClientDialog act={act} tagged={answer} onClose={() => setAct(undefined)} onChanged={asked.again} />
      )}
    </>
  );
}

interface ActionsProps {
  readonly client: Client;
  readonly onAct: (act: ClientAct) => void;
}

function Actions({ client, onAct }: ActionsProps) {
  const turn = client.is_disabled ? 'enable' : 'disable';
  return (
    <>
      <button type="button" class="button" onClick={() => onAct('edit')}>
        <Icon name="edit" /> Edit
      </button>
      <button type="button" class="button" onClick={() => onAct('rotate')}>
        <Icon name="history" /> New secret
      </button>
      <button type="button" class="button" onClick={() => onAct(turn)}>
        <Icon name={client.is_disabled ? 'done' : 'close'} /> {client.is_disabled ? 'Enable' : 'Disable'}
      </button>
      <button type="button" class="button" onClick={() => onAct('delete')}>
        <Icon name="remove" /> Delete
      </button>
    </>
  );
}

function ClientFacts({ client, lastUse }: { readonly client: Client; readonly lastUse: string | null }) {
  const { id, scopes, realms, is_disabled, previous_secret_expires_at: previous, meta } = client;
  return (
    <section class="card" aria-label="This client">
      <dl class="facts">
        <Fact label="State">
          {is_disabled ? (
            <span class="badge badge-warn">disabled: it and its tokens are refused</span>
          ) : (
            <span class="badge badge-good">accepted</span>
          )}
        </Fact>
        <Fact label="Client ID">
          <Identifier id={id} what="the client ID" />
        </Fact>
        <Fact label="Scopes">
          <ul class="words">
            {scopes.map((scope) => (
              <li key={scope}>
                <code>{scope}</code>
              </li>
            ))}
          </ul>
        </Fact>
        <Fact label="Realms">{realms === '*' ? 'all' : <Realms ids={realms} />}</Fact>
        <Fact label="Last use">
          {lastUse === null ? <span class="faint">never</span> : <Instant at={lastUse} />}
        </Fact>
        {previous !== null && (
          <Fact label="Old secret">
            accepted until <Instant at={previous} />
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
