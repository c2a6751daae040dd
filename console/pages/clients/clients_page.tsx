import { useMemo, useState } from 'preact/hooks';
import { ADMIN } from '../../api/administration.ts';
import { clientPages, createClient, type IssuedClient, type ListedClient } from '../../api/clients.ts';
import { PageHead } from '../../layout/head.tsx';
import { href } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Instant } from '../../parts/instant.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { Empty } from '../../parts/notices.tsx';
import { Said } from '../../parts/said.tsx';
import { SecretDialog } from '../../parts/secret_dialog.tsx';
import { may, session } from '../../session/session.ts';
import { GrantForm } from './grant_form.tsx';
import { KeysSection } from './keys_section.tsx';

const NEW = { name: '', scopes: [], realms: '*' } as const;

/** Who may ask for tokens, and the keys that sign them. */
export function ClientsPage() {
  const state = useObserved(session);
  const [round, setRound] = useState(0);
  const [isMaking, setMaking] = useState(false);
  const [issued, setIssued] = useState<IssuedClient>();
  const read = useMemo(() => clientPages(), [round]);
  return (
    <>
      <PageHead
        title="Clients and keys"
        actions={
          may(state, ADMIN) && (
            <button type="button" class="button button-main" onClick={() => setMaking(true)}>
              <Icon name="add" /> New client
            </button>
          )
        }
      />
      <section aria-label="Clients">
        <div class="card-head">
          <h2>Clients</h2>
          <p class="faint small">Programs that ask for tokens with an ID and a secret.</p>
        </div>
        <LongList
          label="Clients"
          read={read}
          row={(client) => <ClientRow client={client} />}
          empty={
            <Empty icon="clients" title="No client yet">
              <p>Make one for each program that is to ask this service, with the scopes it needs.</p>
            </Empty>
          }
        />
      </section>
      <KeysSection />
      {isMaking && (
        <Dialog title="New client" onClose={() => setMaking(false)}>
          <GrantForm
            begin={NEW}
            submit="Create"
            onCancel={() => setMaking(false)}
            save={async (grant) => {
              setIssued(await createClient(grant));
              setMaking(false);
              setRound(round + 1);
            }}
          />
        </Dialog>
      )}
      {issued && (
        <SecretDialog
          what="client"
          issued={{ ...issued, secret: issued.client_secret }}
          onClose={() => setIssued(undefined)}
        />
      )}
    </>
  );
}

function ClientRow({ client }: { readonly client: ListedClient }) {
  const { id, name, scopes, is_disabled, last_used_at } = client;
  return (
    <a class="row" href={href('clients', id)}>
      <Icon name="clients" />
      <span class="row-main">
        <span>
          <Said text={name} />
        </span>
        <span class="faint">{scopes.join(' ')}</span>
      </span>
      {is_disabled && <span class="badge badge-warn">disabled</span>}
      <span class="row-side faint small">
        {last_used_at === null ? (
          'never used'
        ) : (
          <>
            used <Instant at={last_used_at} />
          </>
        )}
      </span>
    </a>
  );
}
