import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { readRealmNames } from '../../api/realm_names.ts';
import { type ApiRecord, RESOURCES } from '../../api/records.ts';
import { useFetch, useRetryAfter } from '../../api/use_fetch.ts';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute, href, navigate, replaceQuery } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { returnToPlace } from '../../parts/list_place.ts';
import { EmptyState, Loaded, ProblemNote } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { useDebounced } from '../../parts/use_debounced.ts';
import { hasAllRealms, session } from '../../session/session.ts';
import type { Person } from './people.ts';
import { emptyCache, type SearchResults, search } from './search.ts';

/** One search box for any identifier of a user. */
export function FindPage() {
  return (
    <>
      <PageHead title="Find" />
      <PersonSearch
        initial={currentRoute.get().query.get('q') ?? ''}
        onTerm={(q) => replaceQuery({ q })}
        onPerson={({ realm, user }) => navigate(href('realms', realm, 'users', user))}
      />
    </>
  );
}

interface PersonSearchProps {
  readonly initial?: string;
  /** Receives each text that is searched. */
  readonly onTerm?: (term: string) => void;
  /** Another user of the same realm is chosen. Without it, all realms are searched, and each person is a link. */
  readonly otherThan?: Pick<Person, 'realm' | 'user'>;
  readonly onPerson: (person: Person) => void;
}

/** A search box for any identifier of a user, and the people found. */
export function PersonSearch({ initial = '', onTerm, otherThan, onPerson }: PersonSearchProps) {
  const box = useRef<HTMLInputElement>(null);
  const field = useId();
  const scope = useId();
  const [text, setText] = useState(initial);
  const term = useDebounced(text.trim());
  const state = useObservable(session);
  const cache = useMemo(emptyCache, [term]);
  const fetched = useFetch<SearchResults>(
    (signal, report) => search(term, state, { cache, signal, report, otherThan }),
    [term],
  );
  useRetryAfter(
    fetched.answer?.problems.find(({ waitSeconds }) => waitSeconds !== undefined),
    fetched.reload,
  );
  const { answer } = fetched;
  const enter = useEnter(answer?.isComplete && answer.text === text.trim() ? answer : undefined, onPerson);
  useEffect(() => onTerm?.(term), [term]);
  // Before the first paint, so that typing works right after a shortcut.
  useLayoutEffect(() => box.current?.focus(), []);
  return (
    <>
      <search class="find">
        <label for={field} class="unseen">
          Name, e-mail, username, subject, ID or URL
        </label>
        <Icon name="find" />
        <input
          ref={box}
          id={field}
          aria-describedby={scope}
          type="search"
          value={text}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="Name, e-mail, username, subject or ID"
          onInput={({ currentTarget }) => {
            enter.cancel();
            setText(currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.isComposing) enter.press();
            else moveByArrow(event);
          }}
        />
      </search>
      <p id={scope} class="faint small">
        Searches whole e-mail addresses, usernames, subjects and IDs first, then the beginnings of words in
        names, e-mail addresses and usernames.
      </p>
      <div aria-live="polite" aria-busy={fetched.isWaiting}>
        {term === '' ? (
          <Hints isOfAllRealms={!otherThan} />
        ) : (
          <Loaded fetched={fetched}>
            {(results) => (
              <Results
                {...results}
                isLooking={fetched.isWaiting && !results.isComplete}
                reload={fetched.reload}
                onChoose={otherThan && onPerson}
              />
            )}
          </Loaded>
        )}
      </div>
    </>
  );
}

/**
 * Chooses the only person that matches as a whole, else the only person, else moves to the first row, once the search for the
 * present text is complete. `results` are undefined until then.
 */
function useEnter(results: SearchResults | undefined, onPerson: (person: Person) => void) {
  const [isPressed, setPressed] = useState(false);
  useEffect(() => {
    if (!isPressed || !results) return;
    setPressed(false);
    const exact = results.people.filter(({ isExact }) => isExact);
    const [only, ...others] = exact.length > 0 ? exact : results.people;
    if (only && others.length === 0 && (exact.length > 0 || !results.hasMore)) onPerson(only);
    else document.querySelector<HTMLElement>('.found .row')?.focus();
  }, [isPressed, results]);
  return { press: () => setPressed(true), cancel: () => setPressed(false) };
}

interface ResultsProps extends SearchResults {
  /** Not all realms have been searched yet. */
  readonly isLooking: boolean;
  readonly reload: () => void;
  readonly onChoose: ((person: Person) => void) | undefined;
}

function Results({ people, hasMore, problems, forbidden, isLooking, reload, onChoose }: ResultsProps) {
  const isWhole = !isLooking && problems.length === 0;
  return (
    <>
      {problems.map((problem) => (
        <ProblemNote key={problem.message} problem={problem} reload={reload} />
      ))}
      {people.length > 0 && <PersonList {...{ people, hasMore, isWhole, onChoose }} />}
      {isLooking && <p class="faint">Still searching: not all realms have been searched yet.</p>}
      {people.length === 0 && isWhole && (
        <EmptyState icon="find" title="No user found">
          <p>Deleted records are found under Changes.</p>
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
  ['A name, an e-mail address or a username', 'the beginning of one word is enough: “doe” finds Jane Doe'],
  ['Several words', 'each must match: “jane doe”'],
  ['A subject', 'exact; put the issuer before it if several issuers use the same'],
  ['The ID of a user, link or username', 'from a log line or a token'],
  ['A URL', 'of a record in the API or in this console'],
] as const;

function Hints({ isOfAllRealms }: { readonly isOfAllRealms: boolean }) {
  return (
    <section class="hints" aria-label="Search examples">
      {isOfAllRealms && <FirstStep />}
      <p>Type or paste anything you know about a user:</p>
      <ul class="stack-tight">
        {SEARCH_EXAMPLES.map(([what, how]) => (
          <li key={what}>
            <strong>{what}</strong> <span class="faint">{how}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What to do next in an installation without realms. */
function FirstStep() {
  const state = useObservable(session);
  const { answer } = useFetch(readRealmNames, []);
  if (!hasAllRealms(state) || answer?.length !== 0) return null;
  return (
    <p class="note">
      <span>
        This installation is empty. Next: <a href={href('realms')}>create a realm</a>. Then add a provider or
        a password profile to it, and its users; or move in what you have with <code>authrealm import</code>.
      </span>
    </p>
  );
}

interface PersonListProps extends Pick<ResultsProps, 'people' | 'hasMore' | 'onChoose'> {
  readonly isWhole: boolean;
}

/** The found people, one row each. */
function PersonList({ people, hasMore, isWhole, onChoose }: PersonListProps) {
  const list = useRef<HTMLUListElement>(null);
  const soFar = isWhole ? '' : ' so far';
  useLayoutEffect(() => returnToPlace(list.current), [people]);
  return (
    <>
      <p class="faint small">
        {hasMore
          ? `Showing the first ${people.length}. Type more to narrow the results.`
          : `${people.length} found${soFar}`}
      </p>
      <ul ref={list} class="rows found" onKeyDown={moveByArrow}>
        {people.map((person) => (
          <li key={`${person.realm}/${person.user}`}>
            {onChoose ? (
              <button type="button" class="row" onClick={() => onChoose(person)}>
                <PersonCells {...person} />
              </button>
            ) : (
              <a class="row" href={href('realms', person.realm, 'users', person.user)}>
                <PersonCells {...person} />
              </a>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Arrow keys move the focus between the rows, and from the first one back to the search box. */
function moveByArrow(event: KeyboardEvent): void {
  const step = STEPS.get(event.key);
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const stops = [...document.querySelectorAll<HTMLElement>('.find input, .found .row')];
  const next = stops[stops.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

const STEPS: ReadonlyMap<string, number> = new Map([
  ['ArrowDown', 1],
  ['ArrowUp', -1],
]);

function PersonCells({ realm, user, record, links }: Person) {
  const [first] = links;
  return (
    <>
      <Icon name="user" />
      <span class="row-main">
        <UntrustedText text={String(record?.name ?? (first ? linkText(first.record) : user))} />
        {record && (
          <span class="faint">
            <UntrustedText text={String(record.email)} isIdentifier={true} />
          </span>
        )}
        {links.map(({ name, record: link }) => (
          <span key={link.id} class="faint match">
            {linkLabel(name)} <UntrustedText text={linkText(link)} isIdentifier={true} />
          </span>
        ))}
      </span>
      <span class="row-side faint small">
        <span class="row-realm">
          <RealmName id={realm} />
        </span>
        {record && (
          <span>
            since <Timestamp at={record.created_at} />
          </span>
        )}
      </span>
    </>
  );
}

function linkLabel(name: string): string {
  return name === RESOURCES.passwordProfileInfos.name ? 'Username' : 'Subject';
}

/** The username, or the subject with its issuer. */
function linkText({ username, subject, issuer }: ApiRecord): string {
  return typeof username === 'string' ? username : `${subject} at ${issuer}`;
}
