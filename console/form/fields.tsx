import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { type NamedRealm as Named, readRealmNames } from '../api/records.ts';
import { useAsked } from '../api/use_fetch.ts';
import type { Field } from '../description.ts';
import { Said } from '../parts/untrusted_text.tsx';
import type { Value, Verb } from './record_form.tsx';

/** A record that a field can name. */
export interface Option {
  readonly id: string;
  readonly label: string;
}

interface ControlProps {
  readonly field: Field;
  readonly verb: Verb;
  readonly value: Value;
  readonly complaints: readonly string[];
  /** Undefined where there are too many to choose from: the ID is typed then. */
  readonly options: readonly Option[] | undefined;
  readonly onValue: (value: Value) => void;
  /** Of the form: fields of two forms have different IDs. */
  readonly prefix: string;
}

/** A member of a record, with its label, what it takes, and what the service had to say about it. */
export function Control(props: ControlProps) {
  const { field, verb, complaints, prefix } = props;
  const id = `${prefix}-${field.name}`;
  const hint = hintOf(field, verb);
  const described = [hint && `${id}-hint`, complaints.length > 0 && `${id}-complaint`]
    .filter(Boolean)
    .join(' ');
  const shared = {
    id,
    name: field.name,
    'aria-invalid': complaints.length > 0,
    ...(described === '' ? {} : { 'aria-describedby': described }),
  };
  const isWanted = field.isRequired && !(field.kind === 'password' && verb === 'update');
  return (
    <div class="field">
      <label for={id}>
        {field.label}
        {isWanted || field.kind === 'flag' || field.kind === 'choice' ? null : (
          <span class="wanted"> (optional)</span>
        )}
      </label>
      <Input {...props} shared={{ ...shared, 'aria-required': isWanted }} />
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {complaints.length > 0 && (
        <p class="complaint" id={`${id}-complaint`}>
          {complaints.join('; ')}
        </p>
      )}
    </div>
  );
}

type SharedAttributes = Readonly<Record<string, string | boolean>>;

function Input({
  field,
  value,
  options,
  onValue,
  shared,
}: ControlProps & { readonly shared: SharedAttributes }) {
  const text = String(value);
  const hear = ({ currentTarget }: { currentTarget: { value: string } }) => onValue(currentTarget.value);
  if (field.kind === 'flag') {
    return (
      <input
        {...shared}
        type="checkbox"
        checked={value === true}
        onChange={({ currentTarget }) => onValue(currentTarget.checked)}
      />
    );
  }
  const choices = field.kind === 'choice' ? field.choices.map((id) => ({ id, label: id })) : options;
  if (choices) return <Choice {...{ choices, text, shared }} onValue={onValue} />;
  if (field.kind === 'texts') return <textarea {...shared} value={text} spellcheck={false} onInput={hear} />;
  if (field.kind === 'password') {
    return <input {...shared} type="password" value={text} autocomplete="new-password" onInput={hear} />;
  }
  return (
    <input
      {...shared}
      type="text"
      value={text}
      inputMode={field.kind === 'email' ? 'email' : field.kind === 'url' ? 'url' : 'text'}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      onInput={hear}
    />
  );
}

interface ChoiceProps {
  readonly choices: readonly Option[];
  readonly text: string;
  readonly shared: SharedAttributes;
  readonly onValue: (value: string) => void;
}

function Choice({ choices, text, shared, onValue }: ChoiceProps) {
  return (
    <select {...shared} value={text} onChange={({ currentTarget }) => onValue(currentTarget.value)}>
      {text === '' && <option value="">Choose…</option>}
      {choices.map(({ id, label }) => (
        <option key={id} value={id}>
          {label}
        </option>
      ))}
    </select>
  );
}

function hintOf({ kind, example, isSettled, references }: Field, verb: Verb): string | undefined {
  if (kind === 'password' && verb === 'update') return 'Leave empty to keep the current value.';
  if (kind === 'texts') return `One per line${example === undefined ? '' : `, for example ${example}`}.`;
  if (isSettled) return 'Cannot be changed while other records refer to it.';
  if (references !== undefined) return undefined;
  return example === undefined || kind === 'password' ? undefined : `For example ${example}`;
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  /** Empty where there is nothing to say about it. */
  readonly complaint: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly inputMode?: 'text' | 'url' | 'numeric';
  readonly onText: (text: string) => void;
}

/** A line of text, with what is to be said about it. */
export function TextField({
  label,
  value,
  complaint,
  hint,
  isRequired = false,
  inputMode = 'text',
  onText,
}: TextFieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, complaint && `${id}-complaint`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired ? null : <span class="wanted"> (optional)</span>}
      </label>
      <input
        id={id}
        value={value}
        inputMode={inputMode}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-required={isRequired}
        aria-invalid={complaint !== ''}
        aria-describedby={described === '' ? undefined : described}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {complaint !== '' && (
        <p class="complaint" id={`${id}-complaint`}>
          {complaint}
        </p>
      )}
    </div>
  );
}

type Chosen = '*' | readonly string[];

interface AllOrSomeProps {
  readonly legend: string;
  /** The words of either choice. */
  readonly all: string;
  readonly some: string;
  readonly value: Chosen;
  readonly complaint: string;
  readonly onValue: (value: Chosen) => void;
  /** How some are chosen, where not all are. */
  readonly children: (
    some: readonly string[],
    choose: (chosen: readonly string[]) => void,
  ) => ComponentChildren;
}

/** All there are, or some of them; who goes to all and back finds what was chosen. */
export function AllOrSome({ legend, all, some: words, value, complaint, onValue, children }: AllOrSomeProps) {
  const group = useId();
  const [some, setSome] = useState<readonly string[]>(value === '*' ? [] : value);
  const isAll = value === '*';
  const choose = (chosen: readonly string[]) => {
    setSome(chosen);
    onValue(chosen);
  };
  return (
    <fieldset class="choices" aria-describedby={complaint === '' ? undefined : `${group}-complaint`}>
      <legend>{legend}</legend>
      <label class="check">
        <input type="radio" name={group} checked={isAll} onChange={() => onValue('*')} />
        {all}
      </label>
      <label class="check">
        <input
          type="radio"
          name={group}
          checked={!isAll}
          aria-invalid={complaint !== ''}
          onChange={() => onValue(some)}
        />
        {words}
      </label>
      {!isAll && children(some, choose)}
      {complaint !== '' && (
        <p class="complaint" id={`${group}-complaint`}>
          {complaint}
        </p>
      )}
    </fieldset>
  );
}

type RealmSelection = '*' | readonly string[];

interface RealmsFieldProps {
  readonly realms: RealmSelection;
  readonly complaint: string;
  readonly onRealms: (realms: RealmSelection) => void;
}

/** All realms, or some of them: chosen by name where they fit into one page, else typed by ID. */
export function RealmsField({ realms, complaint, onRealms }: RealmsFieldProps) {
  const { answer: known } = useAsked(readRealmNames, []);
  return (
    <AllOrSome
      legend="RealmSelection"
      all="All, including future realms"
      some="Some"
      value={realms}
      complaint={complaint}
      onValue={onRealms}
    >
      {(some, choose) =>
        known ? (
          <RealmChecks known={withUnknown(known, some)} some={some} onChoose={choose} />
        ) : (
          <textarea
            aria-label="Realm IDs, one per line"
            value={some.join('\n')}
            spellcheck={false}
            onInput={({ currentTarget }) => choose(currentTarget.value.split(/\s+/).filter(Boolean))}
          />
        )
      }
    </AllOrSome>
  );
}

/** A realm that is gone may stand there still. */
function withUnknown(known: readonly Named[], some: readonly string[]): readonly Named[] {
  const gone = some.filter((id) => known.every((each) => each.id !== id));
  return [...known, ...gone.map((id) => ({ id, name: id }))];
}

interface RealmChecksProps {
  readonly known: readonly Named[];
  readonly some: readonly string[];
  readonly onChoose: (chosen: readonly string[]) => void;
}

function RealmChecks({ known, some, onChoose }: RealmChecksProps) {
  if (known.length === 0) return <p class="hint">There are no realms yet.</p>;
  return (
    <div class="choices-list">
      {known.map(({ id, name }) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={some.includes(id)}
            onChange={({ currentTarget }) =>
              onChoose(currentTarget.checked ? [...some, id] : some.filter((each) => each !== id))
            }
          />
          <span>
            <Said text={name} /> <span class="faint small">{id.slice(-SHOWN_DIGITS)}</span>
          </span>
        </label>
      ))}
    </div>
  );
}

/** RealmSelection of one name are told apart by the end of their IDs. */
const SHOWN_DIGITS = 4;
