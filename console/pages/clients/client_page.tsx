import { SCHEMA } from 'authrealm:schema';
import { useId } from 'preact/hooks';
import { type ClientInput, clients, readClientWithLastUse } from '../../api/admin.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { RealmsField, TextField } from '../../form/fields.tsx';
import { type MissingFields, useForm } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { Timestamp } from '../../parts/timestamp.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { ManagedPage, RealmsFact } from '../managed/managed_page.tsx';

export const CLIENT: Kind<ClientInput> = {
  what: 'client',
  title: 'Client',
  home: { label: 'Clients and keys', href: href('clients') },
  collection: clients,
  blank: { name: '', scopes: [], realms: '*' },
  labels: { name: 'Name', scopes: 'Scopes', realms: 'Realms' },
  Form: ClientForm,
  words: {
    of: {
      rotate: 'gets a new secret, which is shown once.',
      disable: 'and its tokens are rejected within one second. It can be enabled again.',
      enable: 'and its unexpired tokens are accepted again.',
      delete:
        'will be deleted permanently, and its tokens are rejected within one second. Its actions stay in the audit log.',
    },
    isEnabled: 'accepted',
    isDisabled: 'disabled: it and its tokens are rejected',
    enabledMessage: 'The client was enabled.',
    previousSecret: 'accepted until',
  },
};

/** The page of a client. */
export function ClientPage({ parameters: { client = '' } }: PageProps) {
  const fetched = useFetch((signal) => readClientWithLastUse(client, signal), [client]);
  return (
    <ManagedPage
      kind={CLIENT}
      fetched={fetched}
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
            {lastUse === null ? <span class="faint">never</span> : <Timestamp at={lastUse} />}
          </Fact>
        </>
      )}
    />
  );
}

/** The form of a client. */
function ClientForm({ initial, verb, save, onCancel }: FormProps<ClientInput>) {
  const { input, change, errorOf, problem, isBusy, send, form } = useForm({
    initial,
    missingOf: missingClientFields,
    save,
  });
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={input.name}
        error={errorOf('name')}
        isRequired
        onText={(name) => change({ name })}
      />
      <ScopesField
        scopes={input.scopes}
        error={errorOf('scopes')}
        onScopes={(scopes) => change({ scopes })}
      />
      <RealmsField
        realms={input.realms}
        error={errorOf('realms')}
        onRealms={(realms) => change({ realms })}
      />
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}

function missingClientFields({ name, scopes, realms }: ClientInput): MissingFields {
  return {
    ...(name.trim() === '' ? { name: 'This field is required' } : {}),
    ...(scopes.length === 0 ? { scopes: 'Select at least one' } : {}),
    ...(realms.length === 0 ? { realms: 'Select at least one, or choose all' } : {}),
  };
}

interface ScopesFieldProps {
  readonly scopes: readonly string[];
  readonly error: string;
  readonly onScopes: (scopes: readonly string[]) => void;
}

/** The selection of scopes. */
function ScopesField({ scopes, error, onScopes }: ScopesFieldProps) {
  const id = useId();
  return (
    <fieldset class="choices" aria-describedby={error === '' ? undefined : id}>
      <legend>Scopes</legend>
      <div class="choices-grid">
        {SCHEMA.scopes.map((scope, index) => (
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              aria-invalid={index === 0 && error !== ''}
              onChange={({ currentTarget }) =>
                onScopes(
                  SCHEMA.scopes.filter((each) =>
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
      {error !== '' && (
        <p class="field-error" id={id}>
          {error}
        </p>
      )}
    </fieldset>
  );
}
