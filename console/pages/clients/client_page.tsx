import { SCHEMA } from 'authrealm:schema';
import { useId } from 'preact/hooks';
import { type ClientInput, clients, readClientWithLastUse } from '../../api/admin.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { Checks, RealmsField, SelectField, TextField } from '../../form/fields.tsx';
import { missingSentence } from '../../form/rules.ts';
import { type BrokenRules, useForm } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { capitalized, memberLabel, scopeLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { ManagedPage, RealmsFact } from '../managed/managed_page.tsx';

/** The members about the ID alone where it gives nothing. */
const NOT_IMPLICIT = {
  implicit_scopes: [],
  implicit_realms: '*',
  rate_per_address: null,
  storefronts: [],
} as const;

export const CLIENT: Kind<ClientInput> = {
  what: 'client',
  home: { label: 'Clients and keys', href: href('clients') },
  collection: clients,
  blank: {
    name: '',
    scopes: [],
    realms: '*',
    ...NOT_IMPLICIT,
    end_user_address: null,
  },
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
      facts={({
        record: { id, scopes, realms, rate_per_address: rate, end_user_address: address, ...alone },
        last_used_at: lastUse,
      }) => (
        <>
          <Fact label="Client ID">
            <Identifier id={id} what="the client ID" />
          </Fact>
          <ScopesFact scopes={scopes} />
          <RealmsFact realms={realms} />
          {rate !== null && alone.implicit_scopes.length > 0 && (
            <>
              <Fact label={memberLabel('implicit_scopes')}>{alone.implicit_scopes.join(', ')}</Fact>
              <RealmsFact
                label={memberLabel('implicit_realms')}
                realms={alone.implicit_realms === '*' ? realms : alone.implicit_realms}
              />
              <Fact label={memberLabel('rate_per_address')}>{rateWords(rate)} from each address</Fact>
              <Fact label={memberLabel('storefronts')}>{alone.storefronts.join(', ') || 'none'}</Fact>
            </>
          )}
          {address !== null && (
            <Fact label={memberLabel('end_user_address')}>{END_USER_ADDRESSES[address]}</Fact>
          )}
          <Fact label="Last use">
            {lastUse === null ? <span class="faint">never</span> : <Timestamp at={lastUse} />}
          </Fact>
        </>
      )}
    />
  );
}

/** The rate that a form starts with. */
const RATE = '60/60';
const RATE_PATTERN = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/;

/** `60/60` is `60 requests in 60 seconds`. */
function rateWords(rate: string): string {
  return rate.replace(RATE_PATTERN, '$1 requests in $2 seconds');
}

/** The form of a client. */
function ClientForm({ initial, verb, save, onCancel }: FormProps<ClientInput>) {
  const { input, change, sentenceOf, problem, isBusy, send, form } = useForm({
    // A rate that is left of an ID that gave something gives nothing.
    initial: initial.implicit_scopes.length === 0 ? { ...initial, ...NOT_IMPLICIT } : initial,
    brokenRulesOf: brokenClientRules,
    save: (given) => save({ ...given, storefronts: given.storefronts.filter(Boolean) }),
  });
  const isImplicit = input.rate_per_address !== null;
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={input.name}
        error={sentenceOf('name', 'Name')}
        isRequired
        onText={(name) => change({ name })}
      />
      <ScopesField
        legend="Scopes"
        offered={SCHEMA.scopes}
        scopes={input.scopes}
        error={sentenceOf('scopes', 'Scopes')}
        onScopes={(scopes) => change({ scopes, ...withoutAddresses({ ...input, scopes }) })}
      />
      <RealmsField
        realms={input.realms}
        error={sentenceOf('realms', 'Realms')}
        onRealms={(realms) => change({ realms })}
      />
      {reportsAddresses(input) && (
        <SelectField
          label={memberLabel('end_user_address')}
          value={input.end_user_address ?? ''}
          options={ADDRESS_OPTIONS}
          error={sentenceOf('end_user_address', memberLabel('end_user_address'))}
          onValue={(chosen) => change({ end_user_address: chosen as keyof typeof END_USER_ADDRESSES })}
        />
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={isImplicit}
          onChange={({ currentTarget }) =>
            change(currentTarget.checked ? { ...NOT_IMPLICIT, rate_per_address: RATE } : NOT_IMPLICIT)
          }
        />
        For a storefront: its ID alone, without the secret, gets tokens
      </label>
      {isImplicit && <ImplicitFields input={input} change={change} sentenceOf={sentenceOf} />}
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}

interface ImplicitFieldsProps {
  readonly input: ClientInput;
  readonly change: (changed: Partial<ClientInput>) => void;
  readonly sentenceOf: (member: keyof ClientInput & string, label: string) => string;
}

/** What the ID of a client alone gives. */
function ImplicitFields({ input, change, sentenceOf }: ImplicitFieldsProps) {
  return (
    <>
      <ScopesField
        legend={memberLabel('implicit_scopes')}
        offered={SCHEMA.implicitScopes}
        scopes={input.implicit_scopes}
        error={sentenceOf('implicit_scopes', memberLabel('implicit_scopes'))}
        onScopes={(scopes) => change({ implicit_scopes: scopes })}
      />
      <RealmsField
        legend={memberLabel('implicit_realms')}
        all="Those of the client"
        realms={input.implicit_realms}
        error={sentenceOf('implicit_realms', memberLabel('implicit_realms'))}
        onRealms={(realms) => change({ implicit_realms: realms })}
      />
      <TextField
        label={memberLabel('rate_per_address')}
        value={input.rate_per_address ?? ''}
        error={sentenceOf('rate_per_address', memberLabel('rate_per_address'))}
        hint="Requests and seconds: 60/60 is 60 requests in 60 seconds from each address."
        isRequired
        onText={(rate) => change({ rate_per_address: rate.trim() })}
      />
      <TextField
        label={memberLabel('storefronts')}
        value={input.storefronts.join(' ')}
        error={sentenceOf('storefronts', memberLabel('storefronts'))}
        hint="Addresses or networks of its own servers, separated by spaces: they have no such limit."
        onText={(text) => change({ storefronts: text.split(' ') })}
      />
    </>
  );
}

/** Whether a client has to choose. */
function reportsAddresses({ scopes }: ClientInput): boolean {
  return scopes.includes('sign-in');
}

function withoutAddresses(input: ClientInput): Partial<ClientInput> {
  return reportsAddresses(input) ? {} : { end_user_address: null };
}

function brokenClientRules(input: ClientInput): BrokenRules {
  const { name, scopes, realms, rate_per_address: rate } = input;
  const isChosen = !reportsAddresses(input) || input.end_user_address !== null;
  return {
    ...(name.trim() === '' ? { name: missingSentence('Name') } : {}),
    ...(scopes.length === 0 ? { scopes: NO_SCOPE } : {}),
    ...(realms.length === 0 ? { realms: 'Select at least one realm, or choose all.' } : {}),
    ...(isChosen ? {} : { end_user_address: 'Select whether the client reports them.' }),
    ...(rate === null ? {} : brokenImplicitRules(input, rate)),
  };
}

const NO_SCOPE = 'Select at least one scope.';

function brokenImplicitRules(input: ClientInput, rate: string) {
  const { implicit_scopes: scopes, implicit_realms: named } = input;
  const realms = named === '*' ? input.realms : named;
  return {
    ...(scopes.length === 0 ? { implicit_scopes: NO_SCOPE } : {}),
    ...(realms === '*' || realms.length === 0 ? { implicit_realms: 'Select at least one realm.' } : {}),
    ...(RATE_PATTERN.test(rate) ? {} : { rate_per_address: `Enter requests and seconds, such as ${RATE}.` }),
  };
}

const END_USER_ADDRESSES = {
  header: 'Reported with each request: guesses are limited by network as well',
  none: 'Not reported: guesses from all networks are limited together',
};

const ADDRESS_OPTIONS = Object.entries(END_USER_ADDRESSES).map(([id, label]) => ({ id, label }));

export function ScopesFact({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <Fact label="Scopes">
      <ul class="words">
        {scopes.map((scope) => (
          <li key={scope}>
            <Scope scope={scope} />
          </li>
        ))}
      </ul>
    </Fact>
  );
}

/** What a scope permits, and its name. */
function Scope({ scope }: { readonly scope: string }) {
  return (
    <>
      {capitalized(scopeLabel(scope))} <code class="faint small">{scope}</code>
    </>
  );
}

interface ScopesFieldProps {
  readonly legend: string;
  readonly offered: readonly string[];
  readonly scopes: readonly string[];
  readonly error: string;
  readonly onScopes: (scopes: readonly string[]) => void;
}

/** The selection of scopes. */
function ScopesField({ legend, offered, scopes, error, onScopes }: ScopesFieldProps) {
  const id = useId();
  return (
    <fieldset class="choices" aria-describedby={error === '' ? undefined : id}>
      <legend>{legend}</legend>
      <Checks
        class="choices-grid"
        options={offered.map((scope) => ({ id: scope, label: <Scope scope={scope} /> }))}
        selected={scopes}
        isInvalid={error !== ''}
        onSelect={onScopes}
      />
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
