import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { type FieldError, type Problem, toProblem } from '../api/problem.ts';
import type { ApiRecord } from '../api/records.ts';
import type { Description, Field } from '../description.ts';
import { FormActions } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { Control, type Option } from './fields.tsx';

export interface RecordFormProps {
  readonly description: Description;
  readonly verb: Verb;
  /** The record to edit, or default values. */
  readonly initial: Partial<ApiRecord>;
  /** The records that a reference can name, by member. */
  readonly options?: Readonly<Record<string, readonly Option[] | undefined>>;
  /** Derives values from a changed member. */
  readonly follow?: (name: string, values: Values) => Values;
  readonly save: (fields: readonly Field[], values: Values, before: Values) => Promise<void>;
  readonly submit: string;
  readonly onCancel: () => void;
}

const REQUIRED: FieldError = { title: '', detail: 'This field is required', member: undefined };

/** A form with the writable members of a record. Errors of the service appear at their fields. */
export function RecordForm(props: RecordFormProps) {
  const { description, verb, initial, options = {}, follow, save, submit, onCancel } = props;
  const fields = fieldsOf(description, verb);
  const [before] = useState(() => valuesOf(fields, initial));
  const [values, setValues] = useState(before);
  const [errors, setComplaints] = useState<readonly FieldError[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const prefix = useId();
  const [attempts, setAttempts] = useState(0);
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [attempts]);
  const showErrors = (failed: readonly FieldError[]) => {
    setComplaints(failed);
    setAttempts((count) => count + 1);
  };
  const send = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const missing = missingOf(fields, values, verb);
    setProblem(undefined);
    showErrors(missing.map((member) => ({ ...REQUIRED, member })));
    if (missing.length > 0) return;
    setBusy(true);
    try {
      await save(fields, values, before);
    } catch (error) {
      const failure = toProblem(error);
      const known = failure.errors.filter(({ member }) => fields.some(({ name }) => name === member));
      showErrors(known);
      if (known.length === 0 || known.length < failure.errors.length) setProblem(failure);
    } finally {
      setBusy(false);
    }
  };
  const change = (name: string) => (value: Values[string]) => {
    const next = { ...values, [name]: value };
    setValues(follow?.(name, next) ?? next);
    setComplaints(errors.filter(({ member }) => member !== name));
  };
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      {fields.map((field) => (
        <Control
          key={field.name}
          field={field}
          verb={verb}
          value={values[field.name] ?? ''}
          options={options[field.name]}
          errors={errors.flatMap(({ member, detail }) => (member === field.name ? [detail] : []))}
          onValue={change(field.name)}
          prefix={prefix}
        />
      ))}
      {problem && <ProblemNote problem={problem} />}
      <FormActions submit={submit} isDisabled={isBusy} onCancel={onCancel} />
    </form>
  );
}

/** The values of a form. */
export type Value = string | boolean;
export type Values = Readonly<Record<string, Value>>;

export type Verb = 'create' | 'update';

/** The fields of a form. */
function fieldsOf({ fields }: Description, verb: Verb): readonly Field[] {
  return fields.filter(
    ({ kind, writableBy }) =>
      kind !== 'other' && (writableBy === 'anyone' || (writableBy === 'creator' && verb === 'create')),
  );
}

/** The initial values of a form; secrets are unknown. */
export function valuesOf(fields: readonly Field[], record: Partial<ApiRecord>): Values {
  return Object.fromEntries(fields.map((field) => [field.name, valueIn(field, record[field.name])]));
}

function valueIn({ kind, fallback }: Field, stored: unknown): Value {
  const value = stored ?? fallback;
  if (kind === 'flag') return value === true;
  if (Array.isArray(value)) return value.join('\n');
  return typeof value === 'string' ? value : '';
}

/** The input to create a record. */
export function inputToCreate(fields: readonly Field[], values: Values): Record<string, unknown> {
  const changed = fields.filter(({ name, isRequired }) => isRequired || values[name] !== '');
  return Object.fromEntries(changed.map((field) => [field.name, inputOf(field, values[field.name])]));
}

/** The input to update a record: the changed members. */
export function inputToUpdate(
  fields: readonly Field[],
  values: Values,
  before: Values,
): Record<string, unknown> {
  const changed = fields.filter(({ name }) => values[name] !== before[name]);
  return Object.fromEntries(changed.map((field) => [field.name, inputOf(field, values[field.name])]));
}

function inputOf({ kind, isNullable }: Field, value: Value | undefined): unknown {
  if (kind === 'texts') {
    return String(value ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  }
  return value === '' && isNullable ? null : value;
}

/** Required members without a value. An existing secret may stay empty. */
function missingOf(fields: readonly Field[], values: Values, verb: Verb): readonly string[] {
  const isUnchangedSecret = ({ kind }: Field) => kind === 'password' && verb === 'update';
  const missing = fields.filter(
    (field) => field.isRequired && !isUnchangedSecret(field) && values[field.name] === '',
  );
  return missing.map(({ name }) => name);
}
