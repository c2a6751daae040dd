import { useState } from 'preact/hooks';
import type { ApiRecord } from '../api/records.ts';
import type { Description, Field } from '../description.ts';
import { FormActions } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { Control, type Option } from './fields.tsx';
import { type MissingFields, useForm } from './use_form.ts';

export interface RecordFormProps {
  readonly description: Description;
  readonly verb: Verb;
  /** The record to edit, or default values. */
  readonly initial: Partial<ApiRecord>;
  /** The records that a reference can name, by member. */
  readonly options?: Readonly<Record<string, readonly Option[] | undefined>>;
  /** Derives values from changed ones. */
  readonly follow?: (values: Values, changed: Partial<Values>) => Values;
  readonly save: (input: Readonly<Record<string, unknown>>, values: Values) => Promise<void>;
  readonly submit: string;
  readonly onCancel: () => void;
}

/** A form with the writable members of a record. Errors of the service appear at their fields. */
export function RecordForm(props: RecordFormProps) {
  const { description, verb, initial, options = {}, follow, save, submit, onCancel } = props;
  const fields = fieldsOf(description, verb);
  const [before] = useState(() => valuesOf(fields, initial));
  const { input, change, errorOf, problem, isBusy, send, form } = useForm({
    initial: before,
    missingOf: (values) => missingOf(fields, values, verb),
    save: (values) => save(inputOf(fields, values, verb === 'create' ? undefined : before), values),
    follow,
  });
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      {fields.map((field) => (
        <Control
          key={field.name}
          field={field}
          verb={verb}
          value={input[field.name] ?? ''}
          options={options[field.name]}
          error={errorOf(field.name)}
          onValue={(value) => change({ [field.name]: value })}
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
export function fieldsOf({ fields }: Description, verb: Verb): readonly Field[] {
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

/** The members to send: those changed since `before`, or all that a new record has. */
function inputOf(fields: readonly Field[], values: Values, before?: Values): Record<string, unknown> {
  const sent = fields.filter(({ name, isRequired }) =>
    before ? values[name] !== before[name] : isRequired || values[name] !== '',
  );
  return Object.fromEntries(sent.map((field) => [field.name, memberOf(field, values[field.name])]));
}

function memberOf({ kind, isNullable }: Field, value: Value | undefined): unknown {
  if (kind === 'texts') {
    return String(value ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  }
  return value === '' && isNullable ? null : value;
}

/** Required members without a value. An existing secret may stay empty. */
function missingOf(fields: readonly Field[], values: Values, verb: Verb): MissingFields {
  const isUnchangedSecret = ({ kind }: Field) => kind === 'password' && verb === 'update';
  const missing = fields.filter(
    (field) => field.isRequired && !isUnchangedSecret(field) && values[field.name] === '',
  );
  return Object.fromEntries(missing.map(({ name }) => [name, 'This field is required']));
}
