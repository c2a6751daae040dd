import type { ComponentChildren } from 'preact';
import { type ListPage, pagesOf, readPages } from '../../api/list_page.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useAction } from '../../form/use_action.tsx';
import { useObservable } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Loaded, ProblemNote } from '../../parts/notices.tsx';
import { memberLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { actorName, useClients } from '../changes/actors.ts';
import { type Entry, searchChanges } from '../changes/entry.ts';
import { EntryValues } from '../changes/entry_dialog.tsx';

/** Pages per load. */
const PAGES_MAX = 5;

/** Adds older changes to those read so far. */
async function readOlder(
  realm: string,
  user: string,
  { items, next: from }: ListPage<Entry>,
  signal?: AbortSignal,
): Promise<ListPage<Entry>> {
  const read = (after: string) => searchChanges({ realm, user }, after, signal);
  const older = await readPages(pagesOf(read, signal, from), PAGES_MAX);
  return { items: [...items, ...older.items], next: older.next };
}

const UNREAD: ListPage<Entry> = { items: [], next: '' };
const NONE: ListPage<Entry> = { items: [], next: undefined };

/** The changes of a user and its links, as of a version of the user; none without the scope. */
export function useChanges(realm: string, user: string, version?: string) {
  const mayRead = hasScope(useObservable(session), 'changes:read');
  const fetched = useFetch(
    async (signal) => (mayRead ? readOlder(realm, user, UNREAD, signal) : NONE),
    [realm, user, version, mayRead],
  );
  const { run, isBusy, problem } = useAction(() => announce('Older changes loaded.'));
  const onOlder = (pages: ListPage<Entry>) =>
    run(async () => fetched.setAnswer(await readOlder(realm, user, pages)));
  return { mayRead, fetched, clients: useClients(), isBusy, problem, onOlder };
}

export type Changes = ReturnType<typeof useChanges>;

interface HistoryProps {
  readonly changes: Changes;
  /** A button that restores the values before a change, if this session can. */
  readonly restoreOf?: ((entry: Entry) => ComponentChildren) | undefined;
}

/** The changes of a user and its links. */
export function History({ changes, restoreOf }: HistoryProps) {
  if (!changes.mayRead) return null;
  return (
    <section class="card" aria-label="History">
      <div class="card-head">
        <h2>History</h2>
      </div>
      <ChangeList changes={changes} isListed={(entry) => !isTimestampOnly(entry)} restoreOf={restoreOf} />
    </section>
  );
}

interface LinkHistoryProps {
  readonly realm: string;
  readonly user: string;
  readonly link: string;
}

/** The changes of one link. */
export function LinkHistory({ realm, user, link }: LinkHistoryProps) {
  return <ChangeList changes={useChanges(realm, user)} isListed={({ record_id }) => record_id === link} />;
}

interface ChangeListProps extends HistoryProps {
  readonly isListed: (entry: Entry) => boolean;
}

/** Newest first, with a button for older ones. */
function ChangeList({ changes, isListed, restoreOf }: ChangeListProps) {
  const { fetched, clients, isBusy, problem, onOlder } = changes;
  const maySeeValues = hasScope(useObservable(session), 'history:read');
  return (
    <Loaded fetched={fetched}>
      {(pages) => (
        <>
          {!pages.items.some(isListed) && (
            <p class="faint">
              {pages.next === undefined
                ? 'The feed holds no changes of this record.'
                : 'No changes of this record among those searched.'}
            </p>
          )}
          <ol class="history">
            {pages.items.filter(isListed).map((entry) => (
              <li key={entry.seq}>
                <Timestamp at={entry.at} />
                <span>
                  {entry.title}
                  {entry.members.length > 0 && (
                    <span class="faint"> ({entry.members.map(memberLabel).join(', ')})</span>
                  )}
                </span>
                <span class="faint small">
                  <UntrustedText text={actorName(clients, entry.client_id)} />
                </span>
                {maySeeValues && (
                  <details>
                    <summary class="small">Before and after</summary>
                    <EntryValues entry={entry} />
                    {restoreOf?.(entry)}
                  </details>
                )}
              </li>
            ))}
          </ol>
          {problem && <ProblemNote problem={problem} />}
          {pages.next !== undefined && (
            <div class="stack-tight">
              <p class="faint">
                Only the newest {pages.items.length} changes of this user, its links and usernames were
                searched.
              </p>
              <div class="actions">
                <button type="button" class="button" disabled={isBusy} onClick={() => onOlder(pages)}>
                  Load older changes
                </button>
              </div>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Writing a link also updates its user; only the change of the link is listed. */
function isTimestampOnly({ members }: Entry): boolean {
  return members.length === 1 && members[0] === 'updated_at';
}
