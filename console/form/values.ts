import type { Shown } from '../api/records.ts';
import type { Description, Field } from '../description.ts';

/** What stands in the fields of a form. */
export type Value = string | boolean;
export type Values = Readonly<Record<string, Value>>;

export type Verb = 'create' | 'update';

/** The fields that a form of this verb has. */
export function fieldsOf({ fields }: Description, verb: Verb): readonly Field[] {
  return fields.filter(
    ({ kind, saidBy }) =>
      kind !== 'other' && (saidBy === 'anyone' || (saidBy === 'creator' && verb === 'create')),
  );
}

/** What a form begins with; of a secret nothing is known. */
export function valuesOf(fields: readonly Field[], record: Partial<Shown>): Values {
  return Object.fromEntries(fields.map((field) => [field.name, valueIn(field, record[field.name])]));
}

function valueIn({ kind, fallback }: Field, held: unknown): Value {
  const value = held ?? fallback;
  if (kind === 'flag') return value === true;
  if (Array.isArray(value)) return value.join('\n');
  return typeof value === 'string' ? value : '';
}

/** What is said to make a record. */
export function saidToCreate(fields: readonly Field[], values: Values): Record<string, unknown> {
  const said = fields.filter(({ name, isRequired }) => isRequired || values[name] !== '');
  return Object.fromEntries(said.map((field) => [field.name, saidOf(field, values[field.name])]));
}

/** What is said to change one: what differs from how the form began. */
export function saidToUpdate(
  fields: readonly Field[],
  values: Values,
  before: Values,
): Record<string, unknown> {
  const said = fields.filter(({ name }) => values[name] !== before[name]);
  return Object.fromEntries(said.map((field) => [field.name, saidOf(field, values[field.name])]));
}

function saidOf({ kind, isNullable }: Field, value: Value | undefined): unknown {
  if (kind === 'texts') {
    return String(value ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  }
  return value === '' && isNullable ? null : value;
}

/** Members that have to be said and are not. A secret that is there already stays as it is. */
export function missingOf(fields: readonly Field[], values: Values, verb: Verb): readonly string[] {
  const isKept = ({ kind }: Field) => kind === 'password' && verb === 'update';
  const missing = fields.filter((field) => field.isRequired && !isKept(field) && values[field.name] === '');
  return missing.map(({ name }) => name);
}
