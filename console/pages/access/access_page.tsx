import { SCHEMA } from 'authrealm:schema';
import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import {
  ADMIN,
  endConsoleSessions,
  type Grant,
  invitations,
  readConsoleSessions,
  readInvitations,
} from '../../api/admin.ts';
import { readSignInMethods } from '../../api/sign_in_methods.ts';
import { type Fetched, useFetch } from '../../api/use_fetch.ts';
import { Checks, RealmsField, SelectField, TextField } from '../../form/fields.tsx';
import { missingSentence } from '../../form/rules.ts';
import { ActionDialog } from '../../form/use_action.tsx';
import { useForm } from '../../form/use_form.ts';
import { PageHead } from '../../layout/page.tsx';
import { useObservable } from '../../observable.ts';
import { plainText } from '../../parts/confusables.ts';
import { FormActions } from '../../parts/dialog.tsx';
import { Loaded, ProblemNote } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { capitalized, scopeLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import type { FormProps } from '../managed/kind.ts';
import { CreateManagedButton } from '../managed/managed_page.tsx';

const INVITATION = {
  what: 'invitation',
  collection: invitations,
  blank: { name: '', scopes: [], realms: '*' } as Grant,
  Form: InvitationForm,
};

/** Invitations and sessions of the console. */
export function AccessPage() {
  const open = useFetch(readInvitations, []);
  const sessions = useFetch(readConsoleSessions, []);
  const methods = useFetch(readSignInMethods, []);
  return (
    <>
      <PageHead title="Access" actions={<CreateManagedButton kind={INVITATION} onCreated={open.reload} />} />
      <People
        title="Open invitations"
        fetched={open}
        times={({ meta, expires_at: end }) => ({ created: meta.created_at, 'valid until': end })}
        verb="Withdraw"
        question="Withdraw the invitation of"
        effect="Its link is no longer accepted."
        done="The invitation was withdrawn."
        end={(id) => invitations.remove(id, undefined)}
      />
      <People
        title="Sessions"
        fetched={sessions}
        times={({ begun_at: begun, renewed_at: use }) => ({ begun, 'last use': use })}
        verb="End"
        question="End the session of"
        effect="It ends within one second. If it is yours, you are signed out."
        done="The session was ended."
        end={endConsoleSessions}
        idOfAll="*"
      />
      <section class="section" aria-label="Providers that let people in">
        <h2>Providers that let people in</h2>
        <Loaded fetched={methods}>
          {({ providers }) => <UntrustedText text={providers.map(({ name }) => name).join(', ') || 'None'} />}
        </Loaded>
      </section>
    </>
  );
}

interface PeopleProps<T> {
  readonly title: string;
  readonly fetched: Fetched<readonly T[]>;
  /** Times, by label. */
  readonly times: (item: T) => Readonly<Record<string, string>>;
  /** The verb of the buttons. */
  readonly verb: string;
  readonly question: string;
  readonly effect: string;
  readonly done: string;
  readonly end: (id: string) => Promise<void>;
  /** The ID that ends all of them. */
  readonly idOfAll?: string;
}

/** A list of invitations or sessions, each with a button that ends it. */
function People<T extends Grant & { readonly id: string }>(props: PeopleProps<T>) {
  const { title, fetched, times, verb, question, effect, done, end, idOfAll } = props;
  const mayEnd = hasScope(useObservable(session), ADMIN);
  const [ending, setEnding] = useState<Pick<T, 'id' | 'name'>>();
  const isAll = ending?.id === idOfAll;
  const button = (id: string, name: string, words = verb) => (
    <button
      type="button"
      class="text-button"
      aria-label={`${verb} ${plainText(name)}`}
      onClick={() => setEnding({ id, name })}
    >
      {words}
    </button>
  );
  return (
    <section class="section" aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {mayEnd && idOfAll && button(idOfAll, 'all', `${verb} all`)}
      </div>
      <Loaded fetched={fetched}>
        {(items) => (
          <ul class="rows">
            {items.length === 0 && <li class="row faint">None</li>}
            {items.map((item) => (
              <li key={item.id} class="row key-row">
                <div class="row-main">
                  <UntrustedText text={item.name} />
                  <span class="faint small">
                    <Rights {...item} />
                    {Object.entries(times(item)).map(([label, at]) => (
                      <Fragment key={label}>
                        {` · ${label} `}
                        <Timestamp at={at} />
                      </Fragment>
                    ))}
                  </span>
                </div>
                {mayEnd && button(item.id, item.name)}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {ending && (
        <ActionDialog
          title={isAll ? 'End all sessions, also this one?' : `${question} ${plainText(ending.name)}?`}
          verb={verb}
          action={() => end(ending.id)}
          message={isAll ? 'All sessions were ended.' : done}
          onDone={fetched.reload}
          onClose={() => setEnding(undefined)}
        >
          <p>{isAll ? 'This session ends too, and you are signed out.' : effect} This cannot be undone.</p>
        </ActionDialog>
      )}
    </section>
  );
}

/** The highest role that is granted as a whole, what is granted in addition to it, and where. */
function Rights({ scopes, realms }: Grant) {
  const role = SCHEMA.roles.findLast(({ scopes: own }) => own.every((scope) => scopes.includes(scope)));
  const more = scopes.filter((scope) => !role?.scopes.includes(scope)).map(scopeLabel);
  return (
    <>
      {capitalized([...(role ? [role.id] : []), ...more].join(', '))} · {realms === '*' && 'all realms'}
      {realms !== '*' &&
        realms.map((realm, index) => (
          <Fragment key={realm}>
            {index > 0 && ', '}
            <RealmName id={realm} />
          </Fragment>
        ))}
    </>
  );
}

function InvitationForm({ initial, save, onCancel }: FormProps<Grant>) {
  const { input, change, sentenceOf, problem, isBusy, send, form } = useForm({
    initial: { ...initial, role: 'read' },
    brokenRulesOf: ({ name, role, realms }) => ({
      ...(name.trim() === '' ? { name: missingSentence('Name') } : {}),
      ...(role !== 'everything' && realms.length === 0
        ? { realms: 'Select at least one realm, or choose all.' }
        : {}),
    }),
    save: ({ name, role, scopes, realms }) => {
      const granted = SCHEMA.roles.find(({ id }) => id === role)?.scopes ?? [];
      return save({ name, realms: role === 'everything' ? '*' : realms, scopes: [...granted, ...scopes] });
    },
  });
  const { name, role, realms, scopes } = input;
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <TextField
        label="Name"
        value={name}
        error={sentenceOf('name', 'Name')}
        isRequired
        onText={(name) => change({ name })}
      />
      <SelectField label="Role" value={role} options={SCHEMA.roles} onValue={(role) => change({ role })} />
      {role !== 'everything' && (
        <RealmsField
          realms={realms}
          error={sentenceOf('realms', 'Realms')}
          onRealms={(realms) => change({ realms })}
        />
      )}
      <Checks
        class="choices"
        options={[{ id: 'transfer', label: 'May import and export files with all records of these realms' }]}
        selected={scopes}
        onSelect={(scopes) => change({ scopes })}
      />
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit="Create link" isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}
