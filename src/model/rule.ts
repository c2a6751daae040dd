import { z } from 'zod';
import type { Uuid } from './id.ts';

/** The JSON names of the types that schemas expect. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  number: 'a number',
  int: 'a whole number',
};

/** The rule that a value breaks: the schema's own message, or one from this table. */
export function violatedRule(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return sizeRule(issue.origin, `at least ${issue.minimum}`);
    case 'too_big':
      return sizeRule(issue.origin, `at most ${issue.maximum}`);
    default:
      return issue.message;
  }
}

/** What the size of a value counts; a number is compared itself. */
const UNITS: Readonly<Record<string, string>> = { array: 'entries', string: 'characters' };

function sizeRule(origin: string, bound: string): string {
  return origin in UNITS ? `must have ${bound} ${UNITS[origin]}` : `must be ${bound}`;
}

/** An ID of a record, in any letter case. `of` names the record in the error. */
export function identifier(of: string): z.ZodType<Uuid, string> {
  const text = z
    .string()
    .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, `must be the identifier of ${of}`);
  return text.toLowerCase() as z.ZodType<unknown> as z.ZodType<Uuid, string>;
}

/** A text that is not empty. */
export const filledText = () => z.string().min(1);

/** A whole number from `min` to `max`. Of a number beyond both its bound and 2^53, `z.int()` would name the second. */
export function wholeNumber(min: number, max: number) {
  return z.number().min(min, { abort: true }).max(max, { abort: true }).int();
}
