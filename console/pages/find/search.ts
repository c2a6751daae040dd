import { allOf, eq, type Filter } from '../../../src/client/filter.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import { RESOURCES } from '../../api/records.ts';
import { searchRealms } from '../../api/search_realms.ts';
import type { Description } from '../../description.ts';
import { hasScope, type SessionState } from '../../session/session.ts';
import { type Hit, type Person, peopleOf, type ReadUsers, readUsers } from './people.ts';
import { wordFilter } from './word_filter.ts';

/** One search over realms of the session: one round trip. */
interface SearchQuery {
  readonly description: Description;
  readonly filter: Filter;
  /** Whether it compares whole values. */
  readonly isExact: boolean;
  /** Default: all. */
  readonly realms?: readonly string[] | undefined;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** A URL of the API or the console: its last ID is the record. */
const LINK = /^(?:https?:\/\/|#|\/)\S*$/i;
/** Only the last IDs of a line are searched. */
const IDS_MAX = 3;
const { users, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/**
 * The searches for a text: first those for an ID, alone or within a log line or a URL, for a subject, an e-mail
 * address and a username, then those for the words of names, e-mail addresses and usernames.
 */
function searchesFor(trimmed: string): readonly SearchQuery[] {
  const text = trimmed.replace(/\p{Cc}/gu, ' ').trim();
  if (text === '') return [];
  const ids = [...new Set([...text.matchAll(UUID)].map(([id]) => id.toLowerCase()))];
  if (ids.length > 0 && LINK.test(text)) return ids.slice(-1).flatMap(byId);
  // Many providers use UUIDs as subjects; names and addresses are never just a UUID.
  const isId = ids[0] === text.toLowerCase();
  const filter = wordFilter(text);
  const isEmail = /^\S+@\S+$/.test(text);
  return [
    ...ids.slice(-IDS_MAX).flatMap(byId),
    exact(oidcProfileInfos, subjectFilter(text)),
    ...(isEmail ? [exact(users, eq('email', text))] : []),
    ...(foldedKey(text) === '' ? [] : [exact(passwordProfileInfos, eq('username', text))]),
    ...(isId || !filter ? [] : [{ description: users, filter, isExact: false }]),
    ...(filter ? [{ description: passwordProfileInfos, filter, isExact: false }] : []),
  ];
}

function exact(description: Description, filter: Filter): SearchQuery {
  return { description, filter, isExact: true };
}

function byId(id: string): readonly SearchQuery[] {
  return [users, oidcProfileInfos, passwordProfileInfos].map((each) => exact(each, eq('id', id)));
}

/** An issuer before the subject, as in logs, narrows the search. */
function subjectFilter(text: string): Filter {
  const [, issuer, subject] = /^(https?:\/\/\S+)\s+(\S.*)$/.exec(text) ?? [];
  return issuer && subject ? allOf(eq('issuer', issuer), eq('subject', subject)) : eq('subject', text);
}

export interface SearchResults {
  /** The text that was searched. */
  readonly text: string;
  /** Whether all realms were searched without an error. Names may still be read. */
  readonly isComplete: boolean;
  /** Those that match as a whole come first. */
  readonly people: readonly Person[];
  /** Whether there are more results. */
  readonly hasMore: boolean;
  /** Errors of single searches, without duplicates. */
  readonly problems: readonly Problem[];
  /** Resources that this session cannot search. */
  readonly forbidden: readonly string[];
}

const RESULTS_MAX = 25;

/** Progress of the searches for one text. */
interface SearchCache {
  readonly pages: Map<string, SearchPage>;
  readonly users: ReadUsers;
}

export const emptyCache = (): SearchCache => ({ pages: new Map(), users: new Map() });

interface SearchContext {
  readonly cache: SearchCache;
  readonly signal: AbortSignal;
  /** Searches the realm of this user for others. */
  readonly otherThan?: Pick<Person, 'realm' | 'user'> | undefined;
  /** Receives partial results while realms remain. */
  readonly report: (results: SearchResults) => void;
}

/**
 * Runs all searches for a text concurrently over all realms. Values are sent in bodies. Each search
 * continues after its last realm; finished parts are cached, so that a rate-limited session completes over
 * several rounds.
 */
export async function search(
  trimmed: string,
  state: SessionState,
  { cache, signal, otherThan, report }: SearchContext,
): Promise<SearchResults> {
  const realms = otherThan && [otherThan.realm];
  const queries = searchesFor(trimmed).map((query) => ({ ...query, realms }));
  const allowed = queries.filter(({ description }) => hasScope(state, `${description.scope}:read`));
  const forbidden = queries
    .filter((each) => !allowed.includes(each))
    .map(({ description }) => description.name);
  const resultsWith = (problems: readonly Problem[], isComplete: boolean): SearchResults => {
    const pages = allowed.map((query) => cache.pages.get(textOf(query)) ?? UNREAD);
    return {
      text: trimmed,
      isComplete,
      people: peopleOf(
        pages.flatMap(({ hits }) => hits),
        cache.users,
      ).filter(({ user }) => user !== otherThan?.user),
      hasMore: pages.some(hasMore),
      problems,
      forbidden: [...new Set(forbidden)],
    };
  };
  const failures = await Promise.all(
    allowed.map((query) =>
      searchAllRealms(query, cache.pages, signal, () => report(resultsWith([], false))).catch(
        (error: unknown) => {
          signal.throwIfAborted();
          return toProblem(error);
        },
      ),
    ),
  );
  // A text that is, say, no valid username is rejected by that search: it has no results.
  const problems = uniqueProblems(failures.filter(isShownProblem));
  const isComplete = problems.length === 0;
  const found = resultsWith(problems, isComplete);
  report(found);
  const unread = await readUsers(found.people, cache.users, state, signal);
  return resultsWith(uniqueProblems([...problems, ...unread]), isComplete);
}

interface SearchPage {
  readonly hits: readonly Hit[];
  /** The realm to continue after; null at the end, undefined at the start. */
  readonly next: string | null | undefined;
  /** The last searched realm has more results. */
  readonly isTruncated: boolean;
}

const UNREAD: SearchPage = { hits: [], next: undefined, isTruncated: false };

/** Whether results were left out. */
function hasMore({ hits, next, isTruncated }: SearchPage): boolean {
  return isTruncated || (hits.length >= RESULTS_MAX && next !== null);
}

function textOf({ description, filter }: SearchQuery): string {
  return `${description.name} ${filter.text}`;
}

/** Searches a thousand realms at a time, until the end or enough results. */
async function searchAllRealms(
  query: SearchQuery,
  cache: SearchCache['pages'],
  signal: AbortSignal,
  onPart: () => void,
): Promise<undefined> {
  const text = textOf(query);
  let page = cache.get(text) ?? UNREAD;
  while (page.next !== null && page.hits.length < RESULTS_MAX) {
    if (page.next !== undefined) onPart();
    page = await searchNextRealms(page, query, signal);
    cache.set(text, page);
  }
}

/** Adds the results of the next realms. */
async function searchNextRealms(
  { hits, next: after }: SearchPage,
  { description, filter, isExact, realms }: SearchQuery,
  signal: AbortSignal,
): Promise<SearchPage> {
  const { items, next, cut } = await searchRealms(description, {
    filter: filter.text,
    realms,
    page: { limit: RESULTS_MAX - hits.length, after_realm: after },
    signal,
  });
  const more = items.map((item): Hit => ({ ...item, name: description.name, isExact }));
  return { hits: [...hits, ...more], next, isTruncated: cut !== null };
}

function isShownProblem(problem: Problem | undefined): problem is Problem {
  return problem !== undefined && problem.kind !== 'refused';
}

/** Removes duplicate messages; the longest wait wins. */
function uniqueProblems(problems: readonly Problem[]): readonly Problem[] {
  const byWait = problems.toSorted((one, other) => (one.waitSeconds ?? 0) - (other.waitSeconds ?? 0));
  return [...new Map(byWait.map((each) => [each.message, each])).values()];
}
