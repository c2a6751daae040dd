import { allOf, eq, type Filter, written } from '../../../src/client/filter.ts';
import { ask } from '../../api/call_api.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import { RESOURCES, type Shown, shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { may, type SessionState } from '../../session/session.ts';

/** One question that a clue may be the answer to: one round trip, over all realms that the session may read. */
interface Question {
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
function questionsFor(clue: string): readonly Question[] {
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

/** A user that a clue leads to, and by what. */
export interface Found {
  readonly realm: string;
  readonly user: string;
  /** The record that was met: the user, or a link. */
  readonly record: Shown;
  /** Its resource. */
  readonly name: string;
}

export interface Findings {
  readonly found: readonly Found[];
  /** More than were asked for. */
  readonly hasMore: boolean;
  /** Why kinds could not be asked, each reason once. */
  readonly problems: readonly Problem[];
  /** Resources that this session has no right to look into. */
  readonly unasked: readonly string[];
}

const FOUND_MAX = 25;

interface SearchAnswer {
  readonly data: readonly Item[];
  readonly meta: { readonly realms: { readonly next: string | null; readonly cut: string | null } };
}

type Item = Readonly<Record<string, unknown>> & {
  readonly relationships?: Readonly<Record<string, { readonly data?: { readonly id?: string } }>>;
  readonly links?: { readonly self?: string };
};

/** How far questions of one clue have been answered, by their texts. */
export type SearchCache = Map<string, SearchPage>;

interface Seeking {
  readonly cache: SearchCache;
  readonly signal: AbortSignal;
  /** Takes what is found so far, whenever more realms are left to ask. */
  readonly tell: (findings: Findings) => void;
}

/**
 * Everything that a clue leads to, in all realms; the values travel in bodies, all questions at once, and each goes on behind the
 * realm where its last answer ended. What is cache is not asked again: who has a rate gets there in several rounds.
 */
export async function seek(
  clue: string,
  state: SessionState,
  { cache, signal, tell }: Seeking,
): Promise<Findings> {
  const questions = questionsFor(clue);
  const asked = questions.filter(({ description }) => may(state, `${description.scope}:read`));
  const unasked = questions
    .filter((each) => !asked.includes(each))
    .map(({ description }) => description.name);
  const findings = (problems: readonly Problem[]): Findings => {
    const pages = asked.map((question) => cache.get(textOf(question)) ?? NOTHING_YET);
    return {
      found: once(pages.flatMap(({ found }) => found)),
      hasMore: pages.some(hasMore),
      problems,
      unasked: [...new Set(unasked)],
    };
  };
  const troubles = await Promise.all(
    asked.map((question) =>
      askThrough(question, cache, signal, () => tell(findings([]))).catch((error: unknown) => {
        signal.throwIfAborted();
        return problemOf(error);
      }),
    ),
  );
  // A clue that cannot be a username, say, is refused as one: then there is none of that kind.
  return findings(eachOnce(troubles.filter(isTrouble)));
}

interface SearchPage {
  readonly found: readonly Found[];
  /** Behind which realm to go on; null where there is no other one, and undefined before the first. */
  readonly next: string | null | undefined;
  /** The last realm that was asked has more of them. */
  readonly isCut: boolean;
}

const NOTHING_YET: SearchPage = { found: [], next: undefined, isCut: false };

/** More than there is room for. */
function hasMore({ found, next, isCut }: SearchPage): boolean {
  return isCut || (found.length >= FOUND_MAX && next !== null);
}

function textOf({ description, filter }: Question): string {
  return `${description.name} ${filter.text}`;
}

/** Asks one thousand realms after the other, until each was asked or enough is found. */
async function askThrough(
  question: Question,
  cache: SearchCache,
  signal: AbortSignal,
  onPart: () => void,
): Promise<undefined> {
  const text = textOf(question);
  let page = cache.get(text) ?? NOTHING_YET;
  while (page.next !== null && page.found.length < FOUND_MAX) {
    if (page.next !== undefined) onPart();
    page = await askBehind(page, question, signal);
    cache.set(text, page);
  }
}

/** What was found before, and in the realms behind it. */
async function askBehind(
  { found, next: after }: SearchPage,
  { description, filter }: Question,
  signal: AbortSignal,
): Promise<SearchPage> {
  const { body } = await ask<SearchAnswer>({
    method: 'POST',
    path: `v2/${description.collections.at(-1)}/search`,
    body: { filter: filter.text, page: { limit: FOUND_MAX - found.length, after_realm: after } },
    signal,
    scope: `${description.scope}:read`,
  });
  const more = body.data.map((item): Found => {
    const record = shown(description, item);
    const realm = realmIn(item.links?.self ?? '');
    const owner = item.relationships?.[RESOURCES.users.type]?.data?.id;
    return { realm, user: owner ?? record.id, record, name: description.name };
  });
  const { next, cut } = body.meta.realms;
  return { found: [...found, ...more], next, isCut: cut !== null };
}

/** Of a link of the service. */
function realmIn(link: string): string {
  return /\/authentication-realms\/([^/?#]+)/.exec(link)?.[1] ?? '';
}

/** A user that is met by two questions of one kind is told once. */
function once(found: readonly Found[]): readonly Found[] {
  return [...new Map(found.map((each) => [each.record.id, each])).values()];
}

function isTrouble(end: Problem | undefined): end is Problem {
  return end !== undefined && end.kind !== 'refused';
}

/** What several kinds meet is told once, with the longest wait. */
function eachOnce(problems: readonly Problem[]): readonly Problem[] {
  const byWait = problems.toSorted((one, other) => (one.waitSeconds ?? 0) - (other.waitSeconds ?? 0));
  return [...new Map(byWait.map((each) => [each.message, each])).values()];
}
