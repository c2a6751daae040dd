import { allOf, eq, type Filter, written } from '../../../src/client/filter.ts';
import { ask } from '../../api/call_api.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import { type ApiRecord, RESOURCES, shown } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { hasScope, type SessionState } from '../../session/session.ts';

/** One question that a clue may be the answer to: one round trip, over all realms that the session may read. */
interface SearchQuery {
  readonly description: Description;
  readonly filter: Filter;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** A link of the API or of the console: it holds realm, user and record, and the last of them is meant. */
const LINK = /^(?:https?:\/\/|#|\/)\S*$/i;
/** Of a line that holds more identifiers the last ones are asked for. */
const IDS_MAX = 3;
/** A beginning of fewer characters finds too much. */
const PREFIX_CHARACTERS_MIN = 2;

const { users, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/**
 * What to ask for a clue, whatever it is: an ID, alone or in a piece of a log, a pasted link, an e-mail address, a name, a username
 * or a subject.
 */
function searchesFor(trimmed: string): readonly SearchQuery[] {
  const text = trimmed.replace(/\p{Cc}/gu, ' ').trim();
  if (text === '') return [];
  const ids = [...new Set([...text.matchAll(UUID)].map(([id]) => id.toLowerCase()))];
  if (ids.length > 0 && LINK.test(text)) return ids.slice(-1).flatMap(byId);
  const subject = { description: oidcProfileInfos, filter: subjectFilter(text) };
  const visibleText = visible(text);
  // A username has something that can be seen; a subject is what its issuer says.
  if (visibleText === '') return [subject];
  const exact = [{ description: passwordProfileInfos, filter: eq('username', text) }, subject];
  // Many a provider takes an identifier for a subject; names and addresses hold one beside other text.
  const isId = ids[0] === text.toLowerCase();
  const prefixed = isId || visibleText.length < PREFIX_CHARACTERS_MIN ? [] : ['email', 'name'];
  return [
    ...ids.slice(-IDS_MAX).flatMap(byId),
    ...prefixed.map((field) => ({ description: users, filter: startsWith(field, text) })),
    ...exact,
  ];
}

function byId(id: string): readonly SearchQuery[] {
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
function startsWith(field: string, text: string): Filter {
  return written(`like(${field},'${text.replaceAll(/[\\'*]/g, '\\$&')}*')`);
}

/** A user that a clue leads to, and by what. */
export interface SearchResult {
  readonly realm: string;
  readonly user: string;
  /** The record that was met: the user, or a link. */
  readonly record: ApiRecord;
  /** Its resource. */
  readonly name: string;
}

export interface SearchResults {
  readonly results: readonly SearchResult[];
  /** More than were asked for. */
  readonly hasMore: boolean;
  /** Why kinds could not be asked, each reason once. */
  readonly problems: readonly Problem[];
  /** Resources that this session has no right to look into. */
  readonly forbidden: readonly string[];
}

const RESULTS_MAX = 25;

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

interface SearchContext {
  readonly cache: SearchCache;
  readonly signal: AbortSignal;
  /** Takes what is found so far, whenever more realms are left to ask. */
  readonly report: (resultsWith: SearchResults) => void;
}

/**
 * Everything that a clue leads to, in all realms; the values travel in bodies, all questions at once, and each goes on behind the
 * realm where its last answer ended. What is cache is not asked again: who has a rate gets there in several rounds.
 */
export async function search(
  trimmed: string,
  state: SessionState,
  { cache, signal, report }: SearchContext,
): Promise<SearchResults> {
  const questions = searchesFor(trimmed);
  const allowed = questions.filter(({ description }) => hasScope(state, `${description.scope}:read`));
  const forbidden = questions
    .filter((each) => !allowed.includes(each))
    .map(({ description }) => description.name);
  const resultsWith = (problems: readonly Problem[]): SearchResults => {
    const pages = allowed.map((question) => cache.get(textOf(question)) ?? UNREAD);
    return {
      results: uniqueResults(pages.flatMap(({ results }) => results)),
      hasMore: pages.some(hasMore),
      problems,
      forbidden: [...new Set(forbidden)],
    };
  };
  const failures = await Promise.all(
    allowed.map((question) =>
      searchAllRealms(question, cache, signal, () => report(resultsWith([]))).catch((error: unknown) => {
        signal.throwIfAborted();
        return toProblem(error);
      }),
    ),
  );
  // A clue that cannot be a username, say, is refused as one: then there is none of that kind.
  return resultsWith(uniqueProblems(failures.filter(isShownProblem)));
}

interface SearchPage {
  readonly results: readonly SearchResult[];
  /** Behind which realm to go on; null where there is no other one, and undefined before the first. */
  readonly next: string | null | undefined;
  /** The last realm that was asked has more of them. */
  readonly isTruncated: boolean;
}

const UNREAD: SearchPage = { results: [], next: undefined, isTruncated: false };

/** More than there is room for. */
function hasMore({ results, next, isTruncated }: SearchPage): boolean {
  return isTruncated || (results.length >= RESULTS_MAX && next !== null);
}

function textOf({ description, filter }: SearchQuery): string {
  return `${description.name} ${filter.text}`;
}

/** Asks one thousand realms after the other, until each was asked or enough is found. */
async function searchAllRealms(
  question: SearchQuery,
  cache: SearchCache,
  signal: AbortSignal,
  onPart: () => void,
): Promise<undefined> {
  const text = textOf(question);
  let page = cache.get(text) ?? UNREAD;
  while (page.next !== null && page.results.length < RESULTS_MAX) {
    if (page.next !== undefined) onPart();
    page = await searchNextRealms(page, question, signal);
    cache.set(text, page);
  }
}

/** What was found before, and in the realms behind it. */
async function searchNextRealms(
  { results, next: after }: SearchPage,
  { description, filter }: SearchQuery,
  signal: AbortSignal,
): Promise<SearchPage> {
  const { body } = await ask<SearchAnswer>({
    method: 'POST',
    path: `v2/${description.collections.at(-1)}/search`,
    body: { filter: filter.text, page: { limit: RESULTS_MAX - results.length, after_realm: after } },
    signal,
    scope: `${description.scope}:read`,
  });
  const more = body.data.map((item): SearchResult => {
    const record = shown(description, item);
    const realm = realmIn(item.links?.self ?? '');
    const owner = item.relationships?.[RESOURCES.users.type]?.data?.id;
    return { realm, user: owner ?? record.id, record, name: description.name };
  });
  const { next, cut } = body.meta.realms;
  return { results: [...results, ...more], next, isTruncated: cut !== null };
}

/** Of a link of the service. */
function realmIn(link: string): string {
  return /\/authentication-realms\/([^/?#]+)/.exec(link)?.[1] ?? '';
}

/** A user that is met by two questions of one kind is told once. */
function uniqueResults(results: readonly SearchResult[]): readonly SearchResult[] {
  return [...new Map(results.map((each) => [each.record.id, each])).values()];
}

function isShownProblem(end: Problem | undefined): end is Problem {
  return end !== undefined && end.kind !== 'refused';
}

/** What several kinds meet is told once, with the longest wait. */
function uniqueProblems(problems: readonly Problem[]): readonly Problem[] {
  const byWait = problems.toSorted((one, other) => (one.waitSeconds ?? 0) - (other.waitSeconds ?? 0));
  return [...new Map(byWait.map((each) => [each.message, each])).values()];
}
