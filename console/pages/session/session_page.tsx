import { PageHead } from '../../layout/page.tsx';
import { useObservable } from '../../observable.ts';
import { Fact } from '../../parts/facts.tsx';
import { formatHere, Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { endOf, session } from '../../session/session.ts';
import { ScopesFact } from '../clients/client_page.tsx';
import { RealmsFact } from '../managed/managed_page.tsx';

/** Who is signed in, with which rights, and until when. */
export function SessionPage() {
  const { open, ended } = useObservable(session);
  const current = open ?? ended;
  if (!current) return null;
  const { stored, scopes, realms } = current;
  return (
    <>
      <PageHead title="Your session" />
      <section class="card" aria-label="Your session">
        <dl class="facts">
          <Fact label="Name">
            <UntrustedText text={stored.grant.label} />
          </Fact>
          <Fact label="In the audit log">
            <UntrustedText text={stored.grant.actor} isIdentifier />
          </Fact>
          <Fact label="Signed in by">{stored.method === 'link' ? 'a link' : 'a provider'}</Fact>
          <Fact label="Ends">
            <Timestamp at={endOf(stored)} />, earlier if it is not used
          </Fact>
          <Fact label="Time zone of this page">{formatHere().resolvedOptions().timeZone}</Fact>
          <RealmsFact realms={realms} />
          <ScopesFact scopes={[...scopes]} />
        </dl>
      </section>
    </>
  );
}
