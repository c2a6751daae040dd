import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { type NamedRealm, readRealmNames } from '../api/realm_names.ts';
import { useFetch } from '../api/use_fetch.ts';
import type { Field } from '../description.ts';
import { Loading } from '../parts/notices.tsx';
import { memberLabel, resourceLabel, valueLabel } from '../parts/resource_labels.ts';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import { PasswordInput } from './password_input.tsx';
import type { Value, Verb } from './record_form.tsx';

/** A record that a field can refer to, or another choice. */
export interface Option {
  readonly id: string;
  readonly label: string;
}

interface ControlProps {
  readonly field: Field;
  /** Default: that of the member. */
  readonly label?: string;
  readonly verb: Verb;
  readonly value: Value;
  /** Empty if there is none. */
  readonly error: string;
  /** Undefined if there are too many: the user types the ID. */
  readonly options?: readonly Option[] | undefined;
  /** Replaces the hint of the field. */
  readonly hint?: string | undefined;
  readonly onValue: (value: Value) => void;
}

/** Whether a form needs a value. An existing password may stay as it is. */
export function isRequiredIn({ isRequired, kind }: Field, verb: Verb): boolean {
  return isRequired && !(kind === 'password' && verb === 'update');
}

/** The input of a member, with label, hint and error. */
export function Control(props: ControlProps) {
  const { field, label = memberLabel(field.name), verb, error, hint, options } = props;
  const isRequired = isRequiredIn(field, verb);
  return (
    <FieldFrame
      label={label}
      isOptional={!isRequired && field.kind !== 'flag' && field.kind !== 'choice'}
      hint={hint ?? (options ? undefined : hintOf(field, verb))}
      error={error}
    >
      {(attributes) => (
        <Input {...props} attributes={{ ...attributes, name: field.name, 'aria-required': isRequired }} />
      )}
    </FieldFrame>
  );
}

interface FieldFrameProps {
  readonly label: string;
  readonly isOptional: boolean;
  readonly hint: string | undefined;
  /** Empty if there is none. */
  readonly error: string;
  readonly children: (attributes: SharedAttributes) => ComponentChildren;
}

/** The label, hint and error of an input. */
function FieldFrame({ label, isOptional, hint, error, children }: FieldFrameProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isOptional && <span class="optional"> (optional)</span>}
      </label>
      {children({
        id,
        'aria-invalid': error !== '',
        ...(described === '' ? {} : { 'aria-describedby': described }),
      })}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== '' && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

export type SharedAttributes = Readonly<Record<string, string | boolean>>;

function Input({
  field,
  value,
  options,
  onValue,
  attributes,
}: ControlProps & { readonly attributes: SharedAttributes }) {
  const text = String(value);
  const onInput = ({ currentTarget }: { currentTarget: { value: string } }) => onValue(currentTarget.value);
  if (field.kind === 'flag') {
    return (
      <input
        {...attributes}
        type="checkbox"
        checked={value === true}
        onChange={({ currentTarget }) => onValue(currentTarget.checked)}
      />
    );
  }
  const choices =
    field.kind === 'choice'
      ? field.choices.map((id) => ({ id, label: valueLabel(field.name, id) }))
      : options;
  if (choices) return <Choice {...{ choices, text, attributes }} onValue={onValue} />;
  if (field.kind === 'texts')
    return <textarea {...attributes} value={text} spellcheck={false} onInput={onInput} />;
  if (field.kind === 'password') {
    return (
      <PasswordInput {...{ attributes, value: text, canGenerate: field.least !== undefined, onValue }} />
    );
  }
  return (
    <input
      {...attributes}
      type="text"
      value={text}
      inputMode={field.kind === 'url' ? 'url' : 'text'}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      onInput={onInput}
    />
  );
}

interface SelectFieldProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly error?: string;
  readonly onValue: (value: string) => void;
}

/** A selection with its label. */
export function SelectField({ label, value, options, error = '', onValue }: SelectFieldProps) {
  return (
    <FieldFrame label={label} isOptional={false} hint={undefined} error={error}>
      {(attributes) => <Choice choices={options} text={value} attributes={attributes} onValue={onValue} />}
    </FieldFrame>
  );
}

interface ChoiceProps {
  readonly choices: readonly Option[];
  readonly text: string;
  readonly attributes: SharedAttributes;
  readonly onValue: (value: string) => void;
}

function Choice({ choices, text, attributes, onValue }: ChoiceProps) {
  return (
    <select {...attributes} value={text} onChange={({ currentTarget }) => onValue(currentTarget.value)}>
      {text === '' && choices.every(({ id }) => id !== '') && <option value="">Choose…</option>}
      {choices.map(({ id, label }) => (
        <option key={id} value={id}>
          {label}
        </option>
      ))}
    </select>
  );
}

function hintOf({ kind, least, example, isImmutable, references }: Field, verb: Verb): string | undefined {
  if (kind === 'password') {
    const rules = [
      least !== undefined && `At least ${least} characters.`,
      verb === 'update' && 'Leave empty to keep the current value.',
    ];
    return rules.filter(Boolean).join(' ') || undefined;
  }
  if (kind === 'texts') return `One per line${example === undefined ? '' : `, for example ${example}`}.`;
  if (isImmutable) return 'Cannot be changed while other records refer to it.';
  if (references !== undefined) return `The ID of a ${resourceLabel(references).one} of this realm.`;
  return example === undefined ? undefined : `For example ${example}`;
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  /** Empty if there is none. */
  readonly error: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly inputMode?: 'text' | 'url' | 'numeric';
  readonly onText: (text: string) => void;
}

/** A text input with label, hint and error. */
export function TextField({
  label,
  value,
  error,
  hint,
  isRequired = false,
  inputMode = 'text',
  onText,
}: TextFieldProps) {
  return (
    <FieldFrame label={label} isOptional={!isRequired} hint={hint} error={error}>
      {(attributes) => (
        <input
          {...attributes}
          value={value}
          inputMode={inputMode}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-required={isRequired}
          onInput={({ currentTarget }) => onText(currentTarget.value)}
        />
      )}
    </FieldFrame>
  );
}

/** All, or the selected IDs. */
type Selection = '*' | readonly string[];

interface AllOrSomeProps {
  readonly legend: string;
  /** The labels of the two choices. */
  readonly all: string;
  readonly selected: string;
  readonly value: Selection;
  readonly error: string;
  readonly onValue: (value: Selection) => void;
  /** The inputs that select some. */
  readonly children: (
    selected: readonly string[],
    onSelect: (chosen: readonly string[]) => void,
  ) => ComponentChildren;
}

/** All, or a selection. Choosing `all` does not clear the selection. */
export function AllOrSomeField({
  legend,
  all,
  selected: someLabel,
  value,
  error,
  onValue,
  children,
}: AllOrSomeProps) {
  const group = useId();
  const [selected, setSelected] = useState<readonly string[]>(value === '*' ? [] : value);
  const isAll = value === '*';
  const onSelect = (chosen: readonly string[]) => {
    setSelected(chosen);
    onValue(chosen);
  };
  return (
    <fieldset class="choices" aria-describedby={error === '' ? undefined : `${group}-error`}>
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
          aria-invalid={error !== ''}
          onChange={() => onValue(selected)}
        />
        {someLabel}
      </label>
      {!isAll && children(selected, onSelect)}
      {error !== '' && (
        <p class="field-error" id={`${group}-error`}>
          {error}
        </p>
      )}
    </fieldset>
  );
}

interface ChecksProps {
  readonly class: string;
  readonly options: readonly { readonly id: string; readonly label: ComponentChildren }[];
  readonly selected: readonly string[];
  readonly isInvalid?: boolean;
  /** Receives the selection in the order of the options. */
  readonly onSelect: (selected: readonly string[]) => void;
}

/** A check box for each option. */
export function Checks({ options, selected, isInvalid = false, onSelect, ...attributes }: ChecksProps) {
  const ids = options.map(({ id }) => id);
  return (
    <div {...attributes}>
      {options.map(({ id, label }, index) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={selected.includes(id)}
            aria-invalid={isInvalid && index === 0}
            onChange={({ currentTarget: { checked } }) =>
              onSelect(ids.filter((each) => (each === id ? checked : selected.includes(each))))
            }
          />
          <span>{label}</span>
        </label>
      ))}
    </div>
  );
}

interface RealmsFieldProps {
  readonly legend?: string;
  readonly realms: Selection;
  readonly error: string;
  /** The label of `*`. */
  readonly all?: string;
  readonly onRealms: (realms: Selection) => void;
}

/** All realms, or a selection: by name if they fit into one page, else by ID. */
export function RealmsField({
  legend = 'Realms',
  all = 'All, including future realms',
  realms,
  error,
  onRealms,
}: RealmsFieldProps) {
  const { answer: known, isWaiting } = useFetch(readRealmNames, []);
  return (
    <AllOrSomeField legend={legend} all={all} selected="Some" value={realms} error={error} onValue={onRealms}>
      {(selected, onSelect) =>
        known || isWaiting ? (
          <RealmChecks
            known={known && withUnknown(known, selected)}
            selected={selected}
            onChoose={onSelect}
          />
        ) : (
          <textarea
            aria-label="Realm IDs, one per line"
            value={selected.join('\n')}
            spellcheck={false}
            onInput={({ currentTarget }) => onSelect(currentTarget.value.split(/\s+/).filter(Boolean))}
          />
        )
      }
    </AllOrSomeField>
  );
}

/** A deleted realm may still be selected. */
function withUnknown(known: readonly NamedRealm[], selected: readonly string[]): readonly NamedRealm[] {
  const gone = selected.filter((id) => known.every((each) => each.id !== id));
  return [...known, ...gone.map((id) => ({ id, name: id }))];
}

interface RealmChecksProps {
  /** Undefined while they are read. */
  readonly known: readonly NamedRealm[] | undefined;
  readonly selected: readonly string[];
  readonly onChoose: (chosen: readonly string[]) => void;
}

function RealmChecks({ known, selected, onChoose }: RealmChecksProps) {
  if (!known) return <Loading />;
  if (known.length === 0) return <p class="hint">There are no realms yet.</p>;
  const labelOf = ({ id, name }: NamedRealm) => (
    <>
      <UntrustedText text={name} /> <span class="faint small">{id.slice(-SHOWN_DIGITS)}</span>
    </>
  );
  const options = known.map((realm) => ({ id: realm.id, label: labelOf(realm) }));
  return <Checks class="choices-list" {...{ options, selected }} onSelect={onChoose} />;
}

/** The end of the ID distinguishes realms of the same name. */
const SHOWN_DIGITS = 4;
