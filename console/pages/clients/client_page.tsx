import { useAsked } from '../../api/answers.ts';
import { readUsedClient } from '../../api/clients.ts';
import type { PageProps } from '../../layout/page.ts';
import { Identifier } from '../../parts/copy.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Instant } from '../../parts/instant.tsx';
import { AdministeredPage, RealmsFact } from '../administered/page.tsx';
import { CLIENT } from './client_kind.ts';

/** A client: its rights, its last use, and what can be done with it. */
export function ClientPage({ parameters: { client = '' } }: PageProps) {
  const asked = useAsked((signal) => readUsedClient(client, signal), [client]);
  return (
    <AdministeredPage
      kind={CLIENT}
      asked={asked}
      facts={({ record: { id, scopes, realms }, last_used_at: lastUse }) => (
        <>
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
          <RealmsFact realms={realms} />
          <Fact label="Last use">
            {lastUse === null ? <span class="faint">never</span> : <Instant at={lastUse} />}
          </Fact>
        </>
      )}
    />
  );
}
