import { DESCRIBED } from 'authrealm:described';
import { useId } from 'preact/hooks';
import type { Grant } from '../../api/clients.ts';
import { RealmsField } from '../../form/realms_field.tsx';
import { type Missing, useSaying } from '../../form/saying.ts';
import { TextField } from '../../form/text_field.tsx';
import { FormActions } from '../../parts/form_actions.tsx';
import { ProblemNote } from '../../parts/notices.tsx';
import type { FormProps } from '../administered/kind.ts';

/** What a client is called, what it may do, and where. */
export function GrantForm({ begin, verb, save, onCancel }: FormProps<Grant>) {
  const { said: grant, change, about, problem, isBusy, send, form } = useSaying({ begin, missingOf, save });
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

function missingOf({ name, scopes, realms }: Grant): Missing {
  return {
    ...(name.trim() === '' ? { name: 'This has to be said' } : {}),
    ...(scopes.length === 0 ? { scopes: 'Choose at least one' } : {}),
    ...(realms.length === 0 ? { realms: 'Name at least one, or choose all' } : {}),
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
        <p class="hint">admin decides about all rights there are: it can make a client with any of them.</p>
      )}
      {complaint !== '' && (
        <p class="complaint" id={id}>
          {complaint}
        </p>
      )}
    </fieldset>
  );
}
