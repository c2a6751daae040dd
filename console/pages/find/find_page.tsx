import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useAgain, useAsked } from '../../api/use_fetch.ts';
import { useShortcuts } from '../../layout/keys.tsx';
import { PageHead } from '../../layout/page.tsx';
import { href, keepQuery, place } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty, ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/resource_labels.ts';
import { Said } from '../../parts/untrusted_text.tsx';
import { session } from '../../session/session.ts';
import { type Findings, type Found, type SearchCache, seek } from './search.ts';

/** How long typing pauses before something is asked. */
const PAUSE_MS = 180;

/** One box for any clue, and the users that it leads to. */
export function FindPage() {
  const box = useRef<HTMLInputElement>(null);
  const field = useId();
  const [clue, setClue] = useState(place.get().query.get('clue') ?? '');
  const sought = useSettled(clue.trim());
  const state = useObserved(session);
  const cache = useMemo((): SearchCache => new Map(), [sought]);
  const asked = useAsked<Findings>((signal, tell) => seek(sought, state, { cache, signal, tell }), [sought]);
  useAgain(
    asked.answer?.problems.find(({ waitSeconds }) => waitSeconds !== undefined),
    asked.again,
  );
  useShortcuts(useMemo(() => [{ keys: '/', words: 'Search', act: () => box.current?.focus() }], []));
  useEffect(() => keepQuery({ clue: sought }), [sought]);
  // Before anything is shown: who goes here by keys types on at once.
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
          value={clue}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="User ID, username, subject, e-mail, name, or a link"
          onInput={({ currentTarget }) => setClue(currentTarget.value)}
        />
      </search>
      <div aria-live="polite" aria-busy={asked.isWaiting}>
        {sought === '' ? (
          <Hints />
        ) : (
          <Answered asked={asked}>
            {(findings) => <Results {...findings} isLooking={asked.isWaiting} again={asked.again} />}
          </Answered>
        )}
      </div>
    </>
  );
}

/** A value once it has not changed for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

interface ResultsProps extends Findings {
  /** Not every realm has been asked yet. */
  readonly isLooking: boolean;
  readonly again: () => void;
}

function Results({ found, hasMore, problems, unasked, isLooking, again }: ResultsProps) {
  const isWhole = !isLooking && problems.length === 0;
  return (
    <>
      {problems.map((problem) => (
        <ProblemNote key={problem.message} problem={problem} again={again} />
      ))}
      {found.length > 0 && <FoundList found={found} hasMore={hasMore} isWhole={isWhole} />}
      {isLooking && <p class="faint">Still searching: not all realms have been searched yet.</p>}
      {found.length === 0 && isWhole && (
        <Empty icon="find" title="No user found">
          <p>
            Usernames and subjects must match exactly; names and e-mail addresses match by prefix. Deleted
            records are found under Changes.
          </p>
        </Empty>
      )}
      {unasked.length > 0 && (
        <p class="faint small">
          This session cannot search: {unasked.map((name) => nounOf(name).many).join(', ')}.
        </p>
      )}
    </>
  );
}

const CLUES = [
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
        {CLUES.map(([what, how]) => (
          <li key={what}>
            <strong>{what}</strong> <span class="faint">{how}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Users, each with what they were found by. */
function FoundList({
  found,
  hasMore,
  isWhole,
}: {
  readonly found: readonly Found[];
  readonly hasMore: boolean;
  readonly isWhole: boolean;
}) {
  const soFar = isWhole ? '' : ' so far';
  return (
    <>
      <p class="faint small">
        {hasMore
          ? `Showing the first ${found.length}. Type more to narrow the results.`
          : `${found.length} found${soFar}`}
      </p>
      <ul class="rows found">
        {found.map((each) => (
          <li key={each.record.id}>
            <FoundRow {...each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function FoundRow({ realm, user, record, name }: Found) {
  const isUser = name === RESOURCES.users.name;
  const { main, more } = resultText(record);
  return (
    <a class="row" href={href('realms', realm, 'users', user)}>
      <Icon name={isUser ? 'user' : 'link'} />
      <span class="row-main">
        <Said text={main} />
        {more !== '' && (
          <span class="faint">
            <Said text={more} />
          </span>
        )}
      </span>
      <span class="row-side faint small">{nounOf(name).one}</span>
    </a>
  );
}

/** A user by name and address; a link by what the user signs in with, and where. */
function resultText({ name, email, username, subject, issuer }: Found['record']) {
  const said = [name, username, subject].find((each) => typeof each === 'string');
  const beside = [email, issuer].find((each) => typeof each === 'string');
  return { main: String(said ?? ''), more: String(beside ?? '') };
}
