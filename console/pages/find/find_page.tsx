import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useFetch, useRetryAfter } from '../../api/use_fetch.ts';
import { useShortcuts } from '../../layout/keys.tsx';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute, href, replaceQuery } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, Loaded, ProblemNote } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { session } from '../../session/session.ts';
import { type SearchCache, type SearchResult, type SearchResults, search } from './search.ts';

/** Debounce of typing. */
const PAUSE_MS = 180;

/** One search box for any identifier of a user. */
export function FindPage() {
  const box = useRef<HTMLInputElement>(null);
  const field = useId();
  const [text, setText] = useState(currentRoute.get().query.get('q') ?? '');
  const term = useDebounced(text.trim());
  const state = useObservable(session);
  const cache = useMemo((): SearchCache => new Map(), [term]);
  const fetched = useFetch<SearchResults>(
    (signal, report) => search(term, state, { cache, signal, report }),
    [term],
  );
  useRetryAfter(
    fetched.answer?.problems.find(({ waitSeconds }) => waitSeconds !== undefined),
    fetched.reload,
  );
  useShortcuts(useMemo(() => [{ keys: '/', label: 'Search', run: () => box.current?.focus() }], []));
  useEffect(() => replaceQuery({ q: term }), [term]);
  // Before the first paint, so that typing works right after a shortcut.
  useLayoutEffect(() => box.current?.focus(), []);
  return (
    <>
      <PageHead title="Find" />
      <search class="find">
        <label for={field} class="unseen">
          User ID, record ID, username, subject, e-mail, name, or a link
        </label>
        <Icon name="find" />
        <input
          ref={box}
          id={field}
          type="search"
          value={text}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="User ID, username, subject, e-mail, name, or a link"
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </search>
      <div aria-live="polite" aria-busy={fetched.isWaiting}>
        {term === '' ? (
          <Hints />
        ) : (
          <Loaded fetched={fetched}>
            {(results) => <Results {...results} isLooking={fetched.isWaiting} reload={fetched.reload} />}
          </Loaded>
        )}
      </div>
    </>
  );
}

/** A value after it has not changed for a moment. */
function useDebounced(value: string): string {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}

interface ResultsProps extends SearchResults {
  /** Not all realms have been searched yet. */
  readonly isLooking: boolean;
  readonly reload: () => void;
}

function Results({ results, hasMore, problems, forbidden, isLooking, reload }: ResultsProps) {
  const isWhole = !isLooking && problems.length === 0;
  return (
    <>
      {problems.map((problem) => (
        <ProblemNote key={problem.message} problem={problem} reload={reload} />
      ))}
      {results.length > 0 && <ResultList results={results} hasMore={hasMore} isWhole={isWhole} />}
      {isLooking && <p class="faint">Still searching: not all realms have been searched yet.</p>}
      {results.length === 0 && isWhole && (
        <EmptyState icon="find" title="No user found">
          <p>
            Usernames and subjects must match exactly; names and e-mail addresses match by prefix. Deleted
            records are found under Changes.
          </p>
        </EmptyState>
      )}
      {forbidden.length > 0 && (
        <p class="faint small">
          This session cannot search: {forbidden.map((name) => resourceLabel(name).many).join(', ')}.
        </p>
      )}
    </>
  );
}

const SEARCH_EXAMPLES = [
  ['The ID of a user or of a link', 'from a log line or a token'],
  ['A username', 'exact, in any letter case'],
  ['A subject', 'exact; put the issuer before it if several issuers use the same'],
  ['An e-mail address or a name', 'or the beginning of one'],
  ['A link', 'to a record in the API or in this console'],
] as const;

function Hints() {
  return (
    <section class="hints" aria-label="Search examples">
      <p>Type or paste anything you know about a user:</p>
      <ul>
        {SEARCH_EXAMPLES.map(([what, how]) => (
          <li key={what}>
            <strong>{what}</strong> <span class="faint">{how}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The found users, each with the matching record. */
function ResultList({
  results,
  hasMore,
  isWhole,
}: {
  readonly results: readonly SearchResult[];
  readonly hasMore: boolean;
  readonly isWhole: boolean;
}) {
  const soFar = isWhole ? '' : ' so far';
  return (
    <>
      <p class="faint small">
        {hasMore
          ? `Showing the first ${results.length}. Type more to narrow the results.`
          : `${results.length} found${soFar}`}
      </p>
      <ul class="rows found">
        {results.map((each) => (
          <li key={each.record.id}>
            <ResultRow {...each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function ResultRow({ realm, user, record, name }: SearchResult) {
  const isUser = name === RESOURCES.users.name;
  const { main, more } = resultText(record);
  return (
    <a class="row" href={href('realms', realm, 'users', user)}>
      <Icon name={isUser ? 'user' : 'link'} />
      <span class="row-main">
        <UntrustedText text={main} />
        {more !== '' && (
          <span class="faint">
            <UntrustedText text={more} />
          </span>
        )}
      </span>
      <span class="row-side faint small">{resourceLabel(name).one}</span>
    </a>
  );
}

/** Name and e-mail of a user; subject or username and issuer of a link. */
function resultText({ name, email, username, subject, issuer }: SearchResult['record']) {
  const main = [name, username, subject].find((each) => typeof each === 'string');
  const more = [email, issuer].find((each) => typeof each === 'string');
  return { main: String(main ?? ''), more: String(more ?? '') };
}
