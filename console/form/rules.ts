import type { Field } from '../description.ts';
import { inSentence, memberLabel } from '../parts/resource_labels.ts';
import type { Value } from './record_form.tsx';

/** The sentences at the fields of a form, from the descriptions: every form says the same about the same rule. */

/** What a required field without a value needs. `label` names the field. */
export function missingSentence(label: string, isChoice = false): string {
  return `${isChoice ? 'Choose' : 'Enter'} the ${inSentence(label)}.`;
}

/** What is wrong with the value of a field; undefined if only the service can tell. */
export function brokenRule(field: Field, value: Value, isRequired: boolean): string | undefined {
  if (typeof value === 'boolean') return undefined;
  if (value.trim() === '') {
    return isRequired ? missingSentence(memberLabel(field.name), field.kind === 'reference') : undefined;
  }
  return tooShort(field, value) ?? tooLong(field, value) ?? invalid(field, value.trim());
}

/** The service counts as `src/model/password.ts` does. */
function tooShort({ least = 0 }: Field, value: string): string | undefined {
  const characters = [...value.normalize('NFKC')].length;
  return characters < least ? `Enter at least ${least} characters, not ${characters}.` : undefined;
}

function tooLong({ kind, most }: Field, value: string): string | undefined {
  if (most === undefined || kind === 'reference' || kind === 'choice') return undefined;
  if (kind === 'texts') {
    const lines = value.split('\n').filter((line) => line.trim() !== '').length;
    return lines > most ? `Enter at most ${most} lines, not ${lines}.` : undefined;
  }
  // The service counts code points, not UTF-16 units.
  const characters = [...value].length;
  return characters > most ? `Enter at most ${most} characters, not ${characters}.` : undefined;
}

const URL_START = /^https?:\/\/[^\s/]/i;

function invalid({ kind }: Field, value: string): string | undefined {
  if (kind === 'url' && !URL_START.test(value)) return 'Enter an address that begins with https://.';
  return undefined;
}

const PREDICATE = /^(?:must|has|have|is|are|needs|cannot)\b/;

/** The rule of an error of the service as a sentence: `must be unique` at a subject is `Subject must be unique.` How it counts is left out. */
export function ruleSentence(label: string, rule: string): string {
  const plain = rule.replace(/,? (?:before and )?after NFKC/, '');
  const words = PREDICATE.test(plain) ? `${label} ${plain}`.trim() : plain;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`;
}
