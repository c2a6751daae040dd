import { DESCRIBED } from 'authrealm:described';
import { useId } from 'preact/hooks';
import { clients, type Grant, readUsedClient } from '../../api/admin.ts';
import { useAsked } from '../../api/use_fetch.ts';
import { RealmsField, TextField } from '../../form/fields.tsx';
import { type Missing, useSaying } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { Instant } from '../../parts/timestamp.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { AdministeredPage, RealmsFact } from '../managed/managed_page.tsx';

export const CLIENT: Kind<Grant> = {
  what: 'client',
  title: 'Client',
  home: { label: 'Clients and keys', href: href('clients') },
  collection: clients,
  blank: { name: '', scopes: [], realms: '*' },
  labels: { name: 'Name', scopes: 'Scopes', realms: 'Realms' },
  Form: GrantForm,
  words: {
    of: {
      rotate: 'gets a new secret, which is shown once.',
      disable: 'and its tokens are rejected within one second. It can be enabled again.',
      enable: 'and its unexpired tokens are accepted again.',
      delete:
        'will be deleted permanently, and its tokens are rejected within one second. Its actions stay in the audit log.',
    },
    isOn: 'accepted',
    isOff: 'disabled: it and its tokens are rejected',
    turnedOn: 'The client was enabled.',
    before: 'accepted until',
  },
};

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

/** What a client is called, what it may do, and where. */
function GrantForm({ begin, verb, save, onCancel }: FormProps<Grant>) {
  const {
    said: grant,
    change,
    about,
    problem,
    isBusy,
    send,
    form,
  } = useSaying({ begin, missingOf: missingGrantFields, save });
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={grant.name}
        complaint={about('name')}
        isRequired
        onText={(name) => change({ name })}
      />
      <ScopesField
        scopes={grant.scopes}
        complaint={about('scopes')}
        onScopes={(scopes) => change({ scopes })}
      />
      <RealmsField
        realms={grant.realms}
        complaint={about('realms')}
        onRealms={(realms) => change({ realms })}
      />
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isOff={isBusy} onCancel={onCancel} />
    </form>
  );
}

function missingGrantFields({ name, scopes, realms }: Grant): Missing {
  return {
    ...(name.trim() === '' ? { name: 'This field is required' } : {}),
    ...(scopes.length === 0 ? { scopes: 'Select at least one' } : {}),
    ...(realms.length === 0 ? { realms: 'Select at least one, or choose all' } : {}),
  };
}

interface ScopesFieldProps {
  readonly scopes: readonly string[];
  readonly complaint: string;
  readonly onScopes: (scopes: readonly string[]) => void;
}

/** Every right there is. */
function ScopesField({ scopes, complaint, onScopes }: ScopesFieldProps) {
  const id = useId();
  return (
    <fieldset class="choices" aria-describedby={complaint === '' ? undefined : id}>
      <legend>Scopes</legend>
      <div class="choices-grid">
        {DESCRIBED.scopes.map((scope, index) => (
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              aria-invalid={index === 0 && complaint !== ''}
              onChange={({ currentTarget }) =>
                onScopes(
                  DESCRIBED.scopes.filter((each) =>
                    each === scope ? currentTarget.checked : scopes.includes(each),
                  ),
                )
              }
            />
            <code>{scope}</code>
          </label>
        ))}
      </div>
      {scopes.includes('admin') && (
        <p class="hint">admin controls all permissions: it can create a client with any scope.</p>
      )}
      {complaint !== '' && (
        <p class="complaint" id={id}>
          {complaint}
        </p>
      )}
    </fieldset>
  );
}
