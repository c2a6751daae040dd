import type { Field } from '../description.ts';
import type { Value, Verb } from './values.ts';

/** A record that a field can name. */
export interface Option {
  readonly id: string;
  readonly label: string;
}

export interface ControlProps {
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

type Shared = Readonly<Record<string, string | boolean>>;

function Input({ field, value, options, onValue, shared }: ControlProps & { readonly shared: Shared }) {
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
  readonly shared: Shared;
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
  if (kind === 'password' && verb === 'update') return 'Leave it empty to keep what is there.';
  if (kind === 'texts') return `One a line${example === undefined ? '' : `, such as ${example}`}.`;
  if (isSettled) return 'It stays what it is while something refers to it.';
  if (references !== undefined) return undefined;
  return example === undefined || kind === 'password' ? undefined : `Such as ${example}`;
}
