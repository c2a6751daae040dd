import { type ListPage, pagesOf, type ReadPage, readPages } from '../../api/list_page.ts';
import { toProblem } from '../../api/problem.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useAction } from '../../form/use_action.tsx';
import { useObservable } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Loaded, ProblemNote } from '../../parts/notices.tsx';
import { memberLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { useActorNames } from '../changes/actors.ts';
import { type Entry, entryTitle, readChanges } from '../changes/entry.ts';

/** Pages per load. */
const PAGES_MAX = 5;

/** The changes of a user; none where the feed no longer holds the page. */
function historyPages(realm: string, user: string): ReadPage<Entry> {
  return (before, signal) =>
    readChanges(realm, { before, user_id: user }, signal).catch((error: unknown) => {
      if (before === '' || toProblem(error).kind !== 'gone') throw error;
      return { items: [], next: undefined };
    });
}

/** Adds older changes to those read so far. */
async function readOlder(
  realm: string,
  user: string,
  { items, next: from }: ListPage<Entry>,
  signal?: AbortSignal,
): Promise<ListPage<Entry>> {
  const older = await readPages(pagesOf(historyPages(realm, user), signal, from), PAGES_MAX);
  return { items: [...items, ...older.items], next: older.next };
}

const UNREAD: ListPage<Entry> = { items: [], next: '' };

interface HistoryProps {
  readonly realm: string;
  readonly user: string;
}

/** The changes of a user and its links. */
export function History({ realm, user }: HistoryProps) {
  const state = useObservable(session);
  if (!hasScope(state, 'changes:read')) return null;
  return (
    <section class="card" aria-label="History">
      <div class="card-head">
        <h2>History</h2>
      </div>
      <ChangeList realm={realm} user={user} />
    </section>
  );
}

interface ChangeListProps {
  readonly realm: string;
  readonly user: string;
  /** Limits the list to one record. */
  readonly record?: string;
}

/** Changes of a user or of one of its links, newest first. */
export function ChangeList({ realm, user, record }: ChangeListProps) {
  const fetched = useFetch((signal) => readOlder(realm, user, UNREAD, signal), [realm, user]);
  const { run, isBusy, problem } = useAction(() => announce('Older changes loaded.'));
  const isListed = (entry: Entry) =>
    record === undefined ? !isTimestampOnly(entry) : entry.record === record;
  return (
    <Loaded fetched={fetched}>
      {(pages) => (
        <>
          <EntryList entries={pages.items.filter(isListed)} isWhole={pages.next === undefined} />
          {problem && <ProblemNote problem={problem} />}
          {pages.next !== undefined && (
            <LoadOlder
              read={pages.items.length}
              isBusy={isBusy}
              onOlder={() => run(async () => fetched.setAnswer(await readOlder(realm, user, pages)))}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

interface LoadOlderProps {
  /** Number of changes searched. */
  readonly read: number;
  readonly isBusy: boolean;
  readonly onOlder: () => void;
}

/** How far the list goes, and a button for more. */
function LoadOlder({ read, isBusy, onOlder }: LoadOlderProps) {
  return (
    <div class="stack-tight">
      <p class="faint">Only the newest {read} changes of this user and its links were searched.</p>
      <div class="actions">
        <button type="button" class="button" disabled={isBusy} onClick={onOlder}>
          Load older changes
        </button>
      </div>
    </div>
  );
}

function EntryList({ entries, isWhole }: { readonly entries: readonly Entry[]; readonly isWhole: boolean }) {
  const nameActor = useActorNames();
  if (entries.length === 0 && isWhole) return <p class="faint">The feed holds no changes of this record.</p>;
  if (entries.length === 0) return <p class="faint">No changes of this record among those searched.</p>;
  return (
    <ol class="history">
      {entries.map((entry) => (
        <li key={entry.seq}>
          <Timestamp at={entry.at} />
          <span>
            {entryTitle(entry)}
            {entry.members.length > 0 && (
              <span class="faint"> ({entry.members.map(memberLabel).join(', ')})</span>
            )}
          </span>
          <span class="faint small">
            <UntrustedText text={nameActor(entry.who)} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Writing a link also updates its user; only the change of the link is listed. */
function isTimestampOnly({ members }: Entry): boolean {
  return members.length === 1 && members[0] === 'updated_at';
}
