import { DESCRIBED } from 'authrealm:described';
import { useId, useRef, useState } from 'preact/hooks';
import type { Grant } from '../../api/clients.ts';
import { type Complaint, type Problem, problemOf } from '../../api/problem.ts';
import { ProblemNote } from '../../parts/notices.tsx';
import { RealmsField } from './realms_field.tsx';

interface GrantFormProps {
  readonly begin: Grant;
  readonly submit: string;
  readonly save: (grant: Grant) => Promise<void>;
  readonly onCancel: () => void;
}

const MISSING: Readonly<Record<string, string>> = {
  name: 'This has to be said',
  scopes: 'Choose at least one',
  realms: 'Name at least one, or choose all',
};

/** What a client is called, what it may do, and where. */
export function GrantForm({ begin, submit, save, onCancel }: GrantFormProps) {
  const [grant, setGrant] = useState(begin);
  const [complaints, setComplaints] = useState<readonly Complaint[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const prefix = useId();
  const about = (member: string) =>
    complaints.flatMap((each) => (each.member === member ? [each.detail] : [])).join('; ');
  const complain = (found: readonly Complaint[]) => {
    setComplaints(found);
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  const change = (said: Partial<Grant>) => {
    setGrant({ ...grant, ...said });
    setComplaints(complaints.filter(({ member }) => !member || !(member in said)));
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const missing = missingOf(grant);
    setProblem(undefined);
    complain(missing.map((member) => ({ title: '', detail: MISSING[member] ?? '', member })));
    if (missing.length > 0) return;
    setBusy(true);
    try {
      await save(grant);
    } catch (error) {
      const found = problemOf(error);
      const known = found.complaints.filter(({ member }) => member !== undefined && member in begin);
      if (known.length === 0) setProblem(found);
      complain(known);
    } finally {
      setBusy(false);
    }
  };
  const name = about('name');
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      <div class="field">
        <label for={`${prefix}-name`}>Name</label>
        <input
          id={`${prefix}-name`}
          value={grant.name}
          autocomplete="off"
          aria-required
          aria-invalid={name !== ''}
          aria-describedby={name === '' ? undefined : `${prefix}-name-complaint`}
          onInput={({ currentTarget }) => change({ name: currentTarget.value })}
        />
        {name !== '' && (
          <p class="complaint" id={`${prefix}-name-complaint`}>
            {name}
          </p>
        )}
      </div>
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
      <div class="actions">
        <button type="submit" class="button button-main" disabled={isBusy}>
          {submit}
        </button>
        <button type="button" class="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function missingOf({ name, scopes, realms }: Grant): readonly string[] {
  const isMissing = { name: name.trim() === '', scopes: scopes.length === 0, realms: realms.length === 0 };
  return Object.entries(isMissing).flatMap(([member, missing]) => (missing ? [member] : []));
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
