import type { Value, Values } from '../../form/values.ts';
import type { Kind } from './kind.ts';

type Labels<Said> = Kind<Said>['labels'];

/** Every member that is said of one, as a comparison names it. */
export function fieldsOf<Said>(labels: Labels<Said>) {
  return membersOf(labels).map((name) => ({ name, label: labels[name] }));
}

export function membersOf<Said>(labels: Labels<Said>): readonly (keyof Said & string)[] {
  return Object.keys(labels) as (keyof Said & string)[];
}

/** What is said of one, as a comparison shows it. */
export function valuesOf<Said>(labels: Labels<Said>, said: Said): Values {
  return Object.fromEntries(membersOf(labels).map((member) => [member, textOf(said[member])]));
}

/** A text, or that something is so. */
function textOf(member: unknown): Value {
  if (typeof member === 'boolean') return member;
  return Array.isArray(member) ? member.join('\n') : String(member ?? '');
}
