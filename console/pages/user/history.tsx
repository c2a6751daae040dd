import { callApi } from '../../api/call_api.ts';
import { toProblem } from '../../api/problem.ts';
import { RESOURCES } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useAction } from '../../form/use_action.tsx';
import { useObservable } from '../../observable.ts';
import { announce } from '../../parts/announcer.tsx';
import { Loaded, ProblemNote } from '../../parts/notices.tsx';
import { resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';

/** A change as the feed returns it. */
interface Event {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly data: {
    readonly record_id: string;
    readonly members: readonly string[];
    readonly client_id: string;
  };
}

interface EventPage {
  readonly data: readonly Event[];
  readonly links: { readonly next: string | null };
}

/** The changes of a user read so far. */
interface HistoryPages {
  /** Newest first. */
  readonly events: readonly Event[];
  /** Cursor of older changes; undefined at the end. */
  readonly older: string | undefined;
}

/** Pages per load. */
const PAGES_MAX = 5;

/** Loads older changes of a user. */
async function readOlder(
  realm: string,
  user: string,
  from: HistoryPages,
  signal?: AbortSignal,
): Promise<HistoryPages> {
  const events = [...from.events];
  let { older } = from;
  for (let page = 0; page < PAGES_MAX && older !== undefined; page += 1) {
    const found: EventPage | undefined = await readPage(realm, user, older, signal);
    events.push(...(found?.data.toReversed() ?? []));
    const next = found?.links.next;
    older = (next && new URL(next, location.href).searchParams.get('before')) || undefined;
  }
  return { events, older };
}

/** Undefined if the feed no longer holds the page. */
async function readPage(
  realm: string,
  user: string,
  before: string,
  signal?: AbortSignal,
): Promise<EventPage | undefined> {
  const query = new URLSearchParams({ before, user_id: user });
  const path = `v2/authentication-realms/${encodeURIComponent(realm)}/changes?${query}`;
  try {
    return (await callApi<EventPage>({ path, scope: 'changes:read', ...(signal ? { signal } : {}) })).body;
  } catch (error) {
    if (before === '' || toProblem(error).kind !== 'gone') throw error;
    return undefined;
  }
}

const UNREAD: HistoryPages = { events: [], older: '' };

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
  const isListed = (event: Event) =>
    record === undefined ? !isTimestampOnly(event) : event.data.record_id === record;
  return (
    <Loaded fetched={fetched}>
      {(pages) => (
        <>
          <EventList events={pages.events.filter(isListed)} isWhole={pages.older === undefined} />
          {problem && <ProblemNote problem={problem} />}
          {pages.older !== undefined && (
            <LoadOlder
              read={pages.events.length}
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

function EventList({ events, isWhole }: { readonly events: readonly Event[]; readonly isWhole: boolean }) {
  if (events.length === 0 && isWhole) return <p class="faint">The feed holds no changes of this record.</p>;
  if (events.length === 0) return <p class="faint">No changes of this record among those searched.</p>;
  return (
    <ol class="history">
      {events.map((event) => (
        <li key={event.id}>
          <Timestamp at={event.time} />
          <span>
            {eventText(event)}
            {event.data.members.length > 0 && (
              <span class="faint"> ({event.data.members.map(memberLabel).join(', ')})</span>
            )}
          </span>
          <span class="faint small">
            <UntrustedText text={event.data.client_id} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Writing a link also updates its user; only the change of the link is listed. */
function isTimestampOnly({ data: { members } }: Event): boolean {
  return members.length === 1 && members[0] === 'updated_at';
}

/** `user-authentication-info.updated` is `user updated`. */
function eventText({ type }: Event): string {
  const dot = type.lastIndexOf('.');
  const { one } = resourceLabel(type.slice(0, dot));
  return `${one.charAt(0).toUpperCase()}${one.slice(1)} ${type.slice(dot + 1)}`;
}

const MEMBER_LABELS = new Map(
  Object.values(RESOURCES).flatMap(({ fields }) => fields.map(({ name, label }) => [name, label] as const)),
);

function memberLabel(member: string): string {
  return MEMBER_LABELS.get(member) ?? member;
}
