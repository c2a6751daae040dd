import { useState } from 'preact/hooks';
import type { ApiRecord, Key } from '../api/records.ts';
import type { Description, Field } from '../description.ts';
import { FormActions } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/notices.tsx';
import { memberLabel } from '../parts/resource_labels.ts';
import { ExistingRecord } from './existing_record.tsx';
import { Control, isRequiredIn, type Option } from './fields.tsx';
import { brokenRule } from './rules.ts';
import { type BrokenRules, useForm } from './use_form.ts';

export interface RecordFormProps {
  readonly description: Description;
  /** IDs of the records above the record, realm first. */
  readonly parentKey: Key;
  readonly verb: Verb;
  /** The record to edit, or default values. */
  readonly initial: Partial<ApiRecord>;
  /** Values that the form begins with in place of those of the record. */
  readonly filled?: Partial<ApiRecord> | undefined;
  /** The records that a reference can name, by member. */
  readonly options?: Readonly<Record<string, readonly Option[] | undefined>>;
  /** Hints that depend on the values, by member. */
  readonly hintsFor?: (values: Values) => Readonly<Record<string, string>>;
  /** Derives values from changed ones; `typed` are the members that the user has filled in. */
  readonly follow?: (values: Values, changed: Partial<Values>, typed: ReadonlySet<string>) => Values;
  readonly save: (input: Readonly<Record<string, unknown>>, values: Values) => Promise<void>;
  readonly submit: string;
  readonly onCancel: () => void;
}

/**
 * A form with the writable members of a record. Errors appear at their fields; if another record has the values that must be
 * unique, it is linked to.
 */
export function RecordForm(props: RecordFormProps) {
  const { description, parentKey, verb, initial, filled, options = {}, hintsFor, follow, save } = props;
  const fields = fieldsOf(description, verb);
  const [before] = useState(() => valuesOf(fields, initial));
  const { input, change, sentenceOf, refused, problem, isBusy, send, form } = useForm({
    initial: valuesOf(fields, { ...initial, ...filled }),
    brokenRulesOf: (values) => brokenRulesOf(fields, values, verb),
    save: (values) => save(inputOf(fields, values, verb === 'create' ? undefined : before), values),
    follow,
  });
  const hints = hintsFor?.(input) ?? {};
  return (
    <form ref={form} class="form" noValidate onSubmit={send}>
      {fields.map((field) => (
        <Control
          key={field.name}
          field={field}
          verb={verb}
          value={input[field.name] ?? ''}
          options={options[field.name]}
          hint={hints[field.name]}
          error={sentenceOf(field.name, memberLabel(field.name))}
          onValue={(value) => change({ [field.name]: value })}
        />
      ))}
      {problem && <ProblemNote problem={problem} />}
      {refused && (
        <ExistingRecord {...{ description, parentKey, refused }} values={{ ...initial, ...input }} />
      )}
      <FormActions submit={props.submit} isDisabled={isBusy} onCancel={props.onCancel} />
    </form>
  );
}

/** The values of a form. */
export type Value = string | boolean;
export type Values = Readonly<Record<string, Value>>;

export type Verb = 'create' | 'update';

/** The fields of a form. References come first: other values may be copied from the record that is referred to. */
export function fieldsOf({ fields }: Description, verb: Verb): readonly Field[] {
  const writable = fields.filter(
    ({ kind, writableBy }) =>
      kind !== 'other' && (writableBy === 'anyone' || (writableBy === 'creator' && verb === 'create')),
  );
  return writable.toSorted((one, other) => Number(isReference(other)) - Number(isReference(one)));
}

function isReference({ kind }: Field): boolean {
  return kind === 'reference';
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

/** What is wrong with the values, by member: a conclusive answer is only that of the service. */
function brokenRulesOf(fields: readonly Field[], values: Values, verb: Verb): BrokenRules {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const rule = brokenRule(field, values[field.name] ?? '', isRequiredIn(field, verb));
      return rule === undefined ? [] : [[field.name, rule]];
    }),
  );
}
