import { useMemo, useState } from 'preact/hooks';
import { clientPages, type ListedClient } from '../../api/admin.ts';
import { PageHead } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { PagedList } from '../../parts/long_list.tsx';
import { EmptyState } from '../../parts/notices.tsx';
import { capitalized, scopeLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { CreateManagedButton } from '../managed/managed_page.tsx';
import { CLIENT } from './client_page.tsx';
import { KeysSection } from './keys_section.tsx';

/** Clients and signing keys. */
export function ClientsPage() {
  const [round, setRound] = useState(0);
  const read = useMemo(() => clientPages(), [round]);
  return (
    <>
      <PageHead
        title="Clients and keys"
        actions={<CreateManagedButton kind={CLIENT} onCreated={() => setRound(round + 1)} />}
      />
      <section aria-label="Clients">
        <div class="card-head">
          <h2>Clients</h2>
          <p class="faint small">
            Programs that request tokens, with a secret or, if they are public, without one.
          </p>
        </div>
        <PagedList
          label="Clients"
          read={read}
          row={(client) => <ClientRow client={client} />}
          empty={
            <EmptyState icon="clients" title="No clients yet">
              <p>Create one for each program that calls this service, with the scopes it needs.</p>
            </EmptyState>
          }
        />
      </section>
      <KeysSection />
    </>
  );
}

function ClientRow({ client }: { readonly client: ListedClient }) {
  const { id, name, scopes, is_disabled, last_used_at, implicit_scopes: alone } = client;
  return (
    <a class="row" href={href('clients', id)}>
      <Icon name="clients" />
      <span class="row-main">
        <span>
          <UntrustedText text={name} />
        </span>
        <span class="faint">
          {capitalized(scopes.map(scopeLabel).join(', '))}
          {alone.length > 0 && `; by the ID alone ${alone.map(scopeLabel).join(', ')}`}
        </span>
      </span>
      {is_disabled && <span class="badge badge-warn">disabled</span>}
      <span class="row-side faint small">
        {last_used_at === null ? (
          'never used'
        ) : (
          <>
            used <Timestamp at={last_used_at} />
          </>
        )}
      </span>
    </a>
  );
}
