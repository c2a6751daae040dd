import { SCHEMA } from 'authrealm:schema';
import { useId } from 'preact/hooks';
import { type ClientInput, clients, readClientWithLastUse } from '../../api/admin.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { RealmsField, TextField } from '../../form/fields.tsx';
import { missingSentence } from '../../form/rules.ts';
import { type BrokenRules, useForm } from '../../form/use_form.ts';
import type { PageProps } from '../../layout/page.tsx';
import { href } from '../../layout/router.ts';
import { Identifier } from '../../parts/copy.tsx';
import { FormActions } from '../../parts/dialog.tsx';
import { Fact } from '../../parts/facts.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import { capitalized, scopeLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import type { FormProps, Kind } from '../managed/kind.ts';
import { ManagedPage, RealmsFact } from '../managed/managed_page.tsx';

export const CLIENT: Kind<ClientInput> = {
  what: 'client',
  title: 'Client',
  home: { label: 'Clients and keys', href: href('clients') },
  collection: clients,
  hasSecret: ({ is_public: isPublic }) => !isPublic,
  blank: {
    name: '',
    scopes: [],
    realms: '*',
    is_public: false,
    rate_per_address: null,
    end_user_address: null,
  },
  labels: {
    name: 'Name',
    scopes: 'Scopes',
    realms: 'Realms',
    is_public: 'Public',
    rate_per_address: 'Requests per address',
    end_user_address: 'Addresses of end users',
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
      facts={({
        record: { id, scopes, realms, rate_per_address: rate, end_user_address: address },
        last_used_at: lastUse,
      }) => (
        <>
          <Fact label="Client ID">
            <Identifier id={id} what="the client ID" />
          </Fact>
          <Fact label="Secret">
            {rate === null ? 'shown once, when it is created' : 'none: this client is public'}
          </Fact>
          <Fact label="Scopes">
            <ul class="words">
              {scopes.map((scope) => (
                <li key={scope}>
                  {capitalized(scopeLabel(scope))} <code class="faint small">{scope}</code>
                </li>
              ))}
            </ul>
          </Fact>
          <RealmsFact realms={realms} />
          {rate !== null && (
            <Fact label={CLIENT.labels.rate_per_address}>{rateWords(rate)} from each address</Fact>
          )}
          {address !== null && (
            <Fact label={CLIENT.labels.end_user_address}>{END_USER_ADDRESSES[address]}</Fact>
          )}
          <Fact label="Last use">
            {lastUse === null ? <span class="faint">never</span> : <Timestamp at={lastUse} />}
          </Fact>
        </>
      )}
    />
  );
}

/** The rate that a form of a public client starts with. */
const RATE = '60/60';
const RATE_PATTERN = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/;

/** `60/60` is `60 requests in 60 seconds`. */
export function rateWords(rate: string): string {
  return rate.replace(RATE_PATTERN, '$1 requests in $2 seconds');
}

/** The form of a client. */
function ClientForm({ initial, verb, save, onCancel }: FormProps<ClientInput>) {
  const { input, change, sentenceOf, problem, isBusy, send, form } = useForm({
    initial,
    brokenRulesOf: brokenClientRules,
    save,
  });
  const { is_public: isPublic } = input;
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={input.name}
        error={sentenceOf('name', 'Name')}
        isRequired
        onText={(name) => change({ name })}
      />
      {verb === 'create' && (
        <SecretChoice isPublic={isPublic} onPublic={(chosen) => change(rightsOf(input, chosen))} />
      )}
      <ScopesField
        offered={isPublic ? SCHEMA.publicScopes : SCHEMA.scopes}
        scopes={input.scopes}
        error={sentenceOf('scopes', 'Scopes')}
        onScopes={(scopes) => change({ scopes, ...withoutAddresses({ ...input, scopes }) })}
      />
      <RealmsField
        key={String(isPublic)}
        isAllOffered={!isPublic}
        realms={input.realms}
        error={sentenceOf('realms', 'Realms')}
        onRealms={(realms) => change({ realms })}
      />
      {isPublic && (
        <TextField
          label={CLIENT.labels.rate_per_address}
          value={input.rate_per_address ?? ''}
          error={sentenceOf('rate_per_address', CLIENT.labels.rate_per_address)}
          hint="Requests and seconds: 60/60 is 60 requests in 60 seconds from each address."
          isRequired
          onText={(rate) => change({ rate_per_address: rate.trim() })}
        />
      )}
      {reportsAddresses(input) && (
        <EndUserAddressChoice
          chosen={input.end_user_address}
          error={sentenceOf('end_user_address', CLIENT.labels.end_user_address)}
          onChosen={(chosen) => change({ end_user_address: chosen })}
        />
      )}
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={verb === 'create' ? 'Create' : 'Save'} isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}

/** What a public client, or one with a secret, can have of the rights that are filled in. */
function rightsOf({ scopes, realms }: ClientInput, isPublic: boolean): Partial<ClientInput> {
  if (!isPublic) return { is_public: false, rate_per_address: null };
  return {
    is_public: true,
    rate_per_address: RATE,
    end_user_address: null,
    scopes: scopes.filter((scope) => SCHEMA.publicScopes.includes(scope)),
    realms: realms === '*' ? [] : realms,
  };
}

/** Whether a client has to choose: the end users of a public one call the service themselves. */
function reportsAddresses({ scopes, is_public: isPublic }: ClientInput): boolean {
  return scopes.includes('sign-in') && !isPublic;
}

function withoutAddresses(input: ClientInput): Partial<ClientInput> {
  return reportsAddresses(input) ? {} : { end_user_address: null };
}

function brokenClientRules(input: ClientInput): BrokenRules {
  const { name, scopes, realms, is_public: isPublic, rate_per_address: rate } = input;
  const isChosen = !reportsAddresses(input) || input.end_user_address !== null;
  const isRate = !isPublic || RATE_PATTERN.test(rate ?? '');
  return {
    ...(name.trim() === '' ? { name: missingSentence('Name') } : {}),
    ...(scopes.length === 0 ? { scopes: 'Select at least one scope.' } : {}),
    ...(realms.length === 0
      ? { realms: `Select at least one realm${isPublic ? '' : ', or choose all'}.` }
      : {}),
    ...(isRate ? {} : { rate_per_address: `Enter requests and seconds, such as ${RATE}.` }),
    ...(isChosen ? {} : { end_user_address: 'Select whether the client reports them.' }),
  };
}

interface SecretChoiceProps {
  readonly isPublic: boolean;
  readonly onPublic: (isPublic: boolean) => void;
}

/** Whether the client keeps a secret. */
function SecretChoice({ isPublic, onPublic }: SecretChoiceProps) {
  const group = useId();
  const choice = (value: boolean, label: string) => (
    <label class="check">
      <input type="radio" name={group} checked={isPublic === value} onChange={() => onPublic(value)} />
      {label}
    </label>
  );
  return (
    <fieldset class="choices">
      <legend>Secret</legend>
      {choice(false, 'With a secret: a program on a server')}
      {choice(true, 'Public, without a secret: a page in browsers, such as a storefront')}
    </fieldset>
  );
}

const END_USER_ADDRESSES = {
  required: 'Reported with each request: guesses are limited by network as well',
  none: 'Not reported: guesses from all networks are limited together',
};

interface EndUserAddressChoiceProps {
  readonly chosen: ClientInput['end_user_address'];
  readonly error: string;
  readonly onChosen: (chosen: keyof typeof END_USER_ADDRESSES) => void;
}

/** Whether a client that signs in end users reports their addresses. */
function EndUserAddressChoice({ chosen, error, onChosen }: EndUserAddressChoiceProps) {
  const id = useId();
  return (
    <fieldset class="choices" aria-describedby={error === '' ? undefined : id}>
      <legend>{CLIENT.labels.end_user_address}</legend>
      {(['required', 'none'] as const).map((choice) => (
        <label key={choice} class="check">
          <input
            type="radio"
            name={`${id}-choice`}
            checked={chosen === choice}
            aria-invalid={choice === 'required' && error !== ''}
            onChange={() => onChosen(choice)}
          />
          {END_USER_ADDRESSES[choice]}
        </label>
      ))}
      {error !== '' && (
        <p class="field-error" id={id}>
          {error}
        </p>
      )}
    </fieldset>
  );
}

interface ScopesFieldProps {
  readonly offered: readonly string[];
  readonly scopes: readonly string[];
  readonly error: string;
  readonly onScopes: (scopes: readonly string[]) => void;
}

/** The selection of scopes. */
function ScopesField({ offered, scopes, error, onScopes }: ScopesFieldProps) {
  const id = useId();
  return (
    <fieldset class="choices" aria-describedby={error === '' ? undefined : id}>
      <legend>Scopes</legend>
      <div class="choices-grid">
        {offered.map((scope, index) => (
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
            <span>
              {capitalized(scopeLabel(scope))} <code class="faint small">{scope}</code>
            </span>
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
