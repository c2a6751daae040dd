import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAgain, useAsked } from '../../api/answers.ts';
import { PageHead } from '../../layout/head.tsx';
import { useShortcuts } from '../../layout/keys.tsx';
import { keepQuery, place } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty, ProblemNote } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { session } from '../../session/session.ts';
import { FoundList } from './found_list.tsx';
import { type Findings, type Known, seek } from './seeking.ts';

/** How long typing pauses before something is asked. */
const PAUSE_MS = 180;

/** One box for any clue, and the users that it leads to. */
export function FindPage() {
  const box = useRef<HTMLInputElement>(null);
  const field = useId();
  const [clue, setClue] = useState(place.get().query.get('clue') ?? '');
  const sought = useSettled(clue.trim());
  const state = useObserved(session);
  const known = useMemo((): Known => new Map(), [sought]);
  const asked = useAsked<Findings>((signal, tell) => seek(sought, state, { known, signal, tell }), [sought]);
  useAgain(
    asked.answer?.problems.find(({ waitSeconds }) => waitSeconds !== undefined),
    asked.again,
  );
  useShortcuts(useMemo(() => [{ keys: '/', words: 'Type a clue', act: () => box.current?.focus() }], []));
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
      {isLooking && <p class="faint">Still looking: not every realm has been asked yet.</p>}
      {found.length === 0 && isWhole && (
        <Empty icon="find" title="Nobody is found by this">
          <p>
            Usernames and subjects are compared whole; names and e-mail addresses by how they begin. A record
            that was deleted is in the feed of changes, and not here.
          </p>
        </Empty>
      )}
      {unasked.length > 0 && (
        <p class="faint small">
          This session may not look into: {unasked.map((name) => nounOf(name).many).join(', ')}.
        </p>
      )}
    </>
  );
}

const CLUES = [
  ['The ID of a user or of a link', 'from a log line or a token of yours'],
  ['A username', 'whole, in any letter case'],
  ['A subject', 'as the issuer says it; with the issuer before it where two use the same'],
  ['An e-mail address or a name', 'its beginning is enough'],
  ['A link', 'of the API or of this console, pasted whole'],
] as const;

function Hints() {
  return (
    <section class="hints" aria-label="What can be typed here">
      <p>Type or paste whatever you have of a user:</p>
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
