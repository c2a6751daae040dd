import { allOf, eq, type Filter, rawFilter } from '../../../src/client/filter.ts';
import { callApi } from '../../api/call_api.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import { type ApiRecord, parseRecord, RESOURCES } from '../../api/records.ts';
import type { Description } from '../../description.ts';
import { hasScope, type SessionState } from '../../session/session.ts';

/** One search over all realms of the session: one round trip. */
interface SearchQuery {
  readonly description: Description;
  readonly filter: Filter;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
/** A URL of the API or the console: its last ID is the record. */
const LINK = /^(?:https?:\/\/|#|\/)\S*$/i;
/** Only the last IDs of a line are searched. */
const IDS_MAX = 3;
/** Shorter prefixes match too much. */
const PREFIX_CHARACTERS_MIN = 2;

const { users, oidcProfileInfos, passwordProfileInfos } = RESOURCES;

/**
 * The searches for a text: an ID, alone or within a log line, a URL, an e-mail address, a name, a username
 * or a subject.
 */
function searchesFor(trimmed: string): readonly SearchQuery[] {
  const text = trimmed.replace(/\p{Cc}/gu, ' ').trim();
  if (text === '') return [];
  const ids = [...new Set([...text.matchAll(UUID)].map(([id]) => id.toLowerCase()))];
  if (ids.length > 0 && LINK.test(text)) return ids.slice(-1).flatMap(byId);
  const subject = { description: oidcProfileInfos, filter: subjectFilter(text) };
  const visibleText = visible(text);
  // A username has visible characters; a subject can be anything.
  if (visibleText === '') return [subject];
  const exact = [{ description: passwordProfileInfos, filter: eq('username', text) }, subject];
  // Many providers use UUIDs as subjects; names and addresses are never just a UUID.
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

/** An issuer before the subject, as in logs, narrows the search. */
function subjectFilter(text: string): Filter {
  const [, issuer, subject] = /^(https?:\/\/\S+)\s+(\S.*)$/.exec(text) ?? [];
  return issuer && subject ? allOf(eq('issuer', issuer), eq('subject', subject)) : eq('subject', text);
}

/** The visible part of a text, which names are compared by. */
function visible(text: string): string {
  return text.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
}

/** The search over all realms supports prefixes only. */
function startsWith(field: string, text: string): Filter {
  return rawFilter(`like(${field},'${text.replaceAll(/[\\'*]/g, '\\$&')}*')`);
}

/** A found user and the matching record. */
export interface SearchResult {
  readonly realm: string;
  readonly user: string;
  /** The matching record: the user, or a link. */
  readonly record: ApiRecord;
  /** The resource name. */
  readonly name: string;
}

export interface SearchResults {
  readonly results: readonly SearchResult[];
  /** Whether there are more results. */
  readonly hasMore: boolean;
  /** Errors of single searches, without duplicates. */
  readonly problems: readonly Problem[];
  /** Resources that this session cannot search. */
  readonly forbidden: readonly string[];
}

const RESULTS_MAX = 25;

interface SearchResponse {
  readonly data: readonly Item[];
  readonly meta: { readonly realms: { readonly next: string | null; readonly cut: string | null } };
}

type Item = Readonly<Record<string, unknown>> & {
  readonly relationships?: Readonly<Record<string, { readonly data?: { readonly id?: string } }>>;
  readonly links?: { readonly self?: string };
};

/** Progress of the searches for one text. */
export type SearchCache = Map<string, SearchPage>;

interface SearchContext {
  readonly cache: SearchCache;
  readonly signal: AbortSignal;
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
  { cache, signal, report }: SearchContext,
): Promise<SearchResults> {
  const queries = searchesFor(trimmed);
  const allowed = queries.filter(({ description }) => hasScope(state, `${description.scope}:read`));
  const forbidden = queries
    .filter((each) => !allowed.includes(each))
    .map(({ description }) => description.name);
  const resultsWith = (problems: readonly Problem[]): SearchResults => {
    const pages = allowed.map((query) => cache.get(textOf(query)) ?? UNREAD);
    return {
      results: uniqueResults(pages.flatMap(({ results }) => results)),
      hasMore: pages.some(hasMore),
      problems,
      forbidden: [...new Set(forbidden)],
    };
  };
  const failures = await Promise.all(
    allowed.map((query) =>
      searchAllRealms(query, cache, signal, () => report(resultsWith([]))).catch((error: unknown) => {
        signal.throwIfAborted();
        return toProblem(error);
      }),
    ),
  );
  // A text that is, say, no valid username is rejected by that search: it has no results.
  return resultsWith(uniqueProblems(failures.filter(isShownProblem)));
}

interface SearchPage {
  readonly results: readonly SearchResult[];
  /** The realm to continue after; null at the end, undefined at the start. */
  readonly next: string | null | undefined;
  /** The last searched realm has more results. */
  readonly isTruncated: boolean;
}

const UNREAD: SearchPage = { results: [], next: undefined, isTruncated: false };

/** Whether results were left out. */
function hasMore({ results, next, isTruncated }: SearchPage): boolean {
  return isTruncated || (results.length >= RESULTS_MAX && next !== null);
}

function textOf({ description, filter }: SearchQuery): string {
  return `${description.name} ${filter.text}`;
}

/** Searches a thousand realms at a time, until the end or enough results. */
async function searchAllRealms(
  query: SearchQuery,
  cache: SearchCache,
  signal: AbortSignal,
  onPart: () => void,
): Promise<undefined> {
  const text = textOf(query);
  let page = cache.get(text) ?? UNREAD;
  while (page.next !== null && page.results.length < RESULTS_MAX) {
    if (page.next !== undefined) onPart();
    page = await searchNextRealms(page, query, signal);
    cache.set(text, page);
  }
}

/** Adds the results of the next realms. */
async function searchNextRealms(
  { results, next: after }: SearchPage,
  { description, filter }: SearchQuery,
  signal: AbortSignal,
): Promise<SearchPage> {
  const { body } = await callApi<SearchResponse>({
    method: 'POST',
    path: `v2/${description.collections.at(-1)}/search`,
    body: { filter: filter.text, page: { limit: RESULTS_MAX - results.length, after_realm: after } },
    signal,
    scope: `${description.scope}:read`,
  });
  const more = body.data.map((item): SearchResult => {
    const record = parseRecord(description, item);
    const realm = realmIn(item.links?.self ?? '');
    const owner = item.relationships?.[RESOURCES.users.type]?.data?.id;
    return { realm, user: owner ?? record.id, record, name: description.name };
  });
  const { next, cut } = body.meta.realms;
  return { results: [...results, ...more], next, isTruncated: cut !== null };
}

/** The realm ID in a link of the service. */
function realmIn(link: string): string {
  return /\/authentication-realms\/([^/?#]+)/.exec(link)?.[1] ?? '';
}

/** Removes duplicates. */
function uniqueResults(results: readonly SearchResult[]): readonly SearchResult[] {
  return [...new Map(results.map((each) => [each.record.id, each])).values()];
}

function isShownProblem(problem: Problem | undefined): problem is Problem {
  return problem !== undefined && problem.kind !== 'refused';
}

/** Removes duplicate messages; the longest wait wins. */
function uniqueProblems(problems: readonly Problem[]): readonly Problem[] {
  const byWait = problems.toSorted((one, other) => (one.waitSeconds ?? 0) - (other.waitSeconds ?? 0));
  return [...new Map(byWait.map((each) => [each.message, each])).values()];
}
