import { allOf, eq, type Filter, written } from '../../../src/client/filter.ts';
import { RESOURCES } from '../../api/records.ts';
import type { Description } from '../../description.ts';

/** One question that a clue may be the answer to: one round trip, over all realms that the session may read. */
export interface Question {
  readonly description: Description;
  readonly filter: Filter;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** A beginning of fewer characters finds too much. */
const BEGINNING_MIN = 2;

const { users, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/** What to ask for a clue, whatever it is: an ID, a pasted link, an e-mail address, a name, a username or a subject. */
export function questionsFor(clue: string): readonly Question[] {
  const text = clue.replace(/\p{Cc}/gu, ' ').trim();
  if (text === '') return [];
  const ids = [...text.matchAll(UUID)].map(([id]) => id.toLowerCase());
  const last = ids.at(-1);
  if (last !== undefined && (/^https?:|^#|\//.test(text) || text.length === last.length)) return byId(ids);
  const subject = { description: oidcProfileInfos, filter: subjectFilter(text) };
  const seen = visible(text);
  // A username has something that can be seen; a subject is what its issuer says.
  if (seen === '') return [subject];
  const exact = [{ description: passwordProfileInfos, filter: eq('username', text) }, subject];
  if (seen.length < BEGINNING_MIN) return exact;
  return [
    { description: users, filter: beginning('email', text) },
    { description: users, filter: beginning('name', text) },
    ...exact,
  ];
}

/** A pasted link holds realm, user and record: the last of them that is found is meant. */
function byId(ids: readonly string[]): readonly Question[] {
  return [users, oidcProfileInfos, passwordProfileInfos].map((description) => ({
    description,
    filter: eq('id', ids.at(-1) ?? ''),
  }));
}

/** An issuer before it, as it stands in tokens and logs, says which subject is meant. */
function subjectFilter(text: string): Filter {
  const [, issuer, subject] = /^(https?:\/\/\S+)\s+(\S.*)$/.exec(text) ?? [];
  return issuer && subject ? allOf(eq('issuer', issuer), eq('subject', subject)) : eq('subject', text);
}

/** What is compared of a name: invisible characters are not. */
function visible(text: string): string {
  return text.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
}

/** Of all realms together users are found by how a text begins, and not by what it holds. */
function beginning(field: string, text: string): Filter {
  return written(`like(${field},'${text.replaceAll(/[\\'*]/g, '\\$&')}*')`);
}
