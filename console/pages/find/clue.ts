import { allOf, eq, type Filter, written } from '../../../src/client/filter.ts';
import { RESOURCES } from '../../api/records.ts';
import type { Description } from '../../description.ts';

/** One question that a clue may be the answer to: one round trip, over all realms that the session may read. */
export interface Question {
  readonly description: Description;
  readonly filter: Filter;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** A link of the API or of the console: it holds realm, user and record, and the last of them is meant. */
const LINK = /^(?:https?:\/\/|#|\/)\S*$/i;
/** Of a line that holds more identifiers the last ones are asked for. */
const IDS_MAX = 3;
/** A beginning of fewer characters finds too much. */
const BEGINNING_MIN = 2;

const { users, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/**
 * What to ask for a clue, whatever it is: an ID, alone or in a piece of a log, a pasted link, an e-mail address, a name, a username
 * or a subject.
 */
export function questionsFor(clue: string): readonly Question[] {
  const text = clue.replace(/\p{Cc}/gu, ' ').trim();
  if (text === '') return [];
  const ids = [...new Set([...text.matchAll(UUID)].map(([id]) => id.toLowerCase()))];
  if (ids.length > 0 && LINK.test(text)) return ids.slice(-1).flatMap(byId);
  const subject = { description: oidcProfileInfos, filter: subjectFilter(text) };
  const seen = visible(text);
  // A username has something that can be seen; a subject is what its issuer says.
  if (seen === '') return [subject];
  const exact = [{ description: passwordProfileInfos, filter: eq('username', text) }, subject];
  // Many a provider takes an identifier for a subject; names and addresses hold one beside other text.
  const isId = ids[0] === text.toLowerCase();
  const begun = isId || seen.length < BEGINNING_MIN ? [] : ['email', 'name'];
  return [
    ...ids.slice(-IDS_MAX).flatMap(byId),
    ...begun.map((field) => ({ description: users, filter: beginning(field, text) })),
    ...exact,
  ];
}

function byId(id: string): readonly Question[] {
  return [users, oidcProfileInfos, passwordProfileInfos].map((description) => ({
    description,
    filter: eq('id', id),
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
