import { useAsked } from '../../api/answers.ts';
import { ask } from '../../api/caller.ts';
import { RESOURCES } from '../../api/records.ts';
import { useObserved } from '../../observable.ts';
import { Instant } from '../../parts/instant.tsx';
import { Answered } from '../../parts/notices.tsx';
import { nounOf } from '../../parts/nouns.ts';
import { Said } from '../../parts/said.tsx';
import { may, session } from '../../session/session.ts';

/** A change as the feed tells it. */
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

/** Pages of changes that are read for one user; what is older stays in the feed. */
const PAGES_MAX = 5;

/** What the feed has of a user, the newest first. */
async function readChanges(realm: string, user: string, signal: AbortSignal): Promise<readonly Event[]> {
  const events: Event[] = [];
  let before: string | undefined = '';
  for (let page = 0; page < PAGES_MAX && before !== undefined; page += 1) {
    const query = new URLSearchParams({ before, user_id: user });
    const path = `v2/authentication-realms/${encodeURIComponent(realm)}/changes?${query}`;
    const { body }: { body: EventPage } = await ask<EventPage>({ path, signal, scope: 'changes:read' });
    events.push(...body.data.toReversed());
    const { next } = body.links;
    before = (next && new URL(next, location.href).searchParams.get('before')) ?? undefined;
  }
  return events;
}

interface HistoryProps {
  readonly realm: string;
  readonly user: string;
}

/** Everything that was done with a user and their links. */
export function History({ realm, user }: HistoryProps) {
  const state = useObserved(session);
  if (!may(state, 'changes:read')) return null;
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
  /** Of one record alone. */
  readonly record?: string;
}

/** Changes of a user, or of one of their links, the newest first. */
export function ChangeList({ realm, user, record }: ChangeListProps) {
  const asked = useAsked((signal) => readChanges(realm, user, signal), [realm, user]);
  return (
    <Answered asked={asked}>
      {(events) => {
        const told = events.filter((event) =>
          record === undefined ? !isTouch(event) : event.data.record_id === record,
        );
        if (told.length === 0) return <p class="faint">The feed has no change of this any more.</p>;
        return (
          <ol class="history">
            {told.map((event) => (
              <li key={event.id}>
                <Instant at={event.time} />
                <span>
                  {wordsOf(event)}
                  {event.data.members.length > 0 && (
                    <span class="faint"> ({event.data.members.map(labelOf).join(', ')})</span>
                  )}
                </span>
                <span class="faint small">
                  <Said text={event.data.client_id} />
                </span>
              </li>
            ))}
          </ol>
        );
      }}
    </Answered>
  );
}

/** A change of a link touches its user, of whom nothing else is new: the change of the link tells it. */
function isTouch({ data: { members } }: Event): boolean {
  return members.length === 1 && members[0] === 'updated_at';
}

/** `user-authentication-info.updated` is `user updated`. */
function wordsOf({ type }: Event): string {
  const dot = type.lastIndexOf('.');
  const { one } = nounOf(type.slice(0, dot));
  return `${one.charAt(0).toUpperCase()}${one.slice(1)} ${type.slice(dot + 1)}`;
}

const LABELS = new Map(
  Object.values(RESOURCES).flatMap(({ fields }) => fields.map(({ name, label }) => [name, label] as const)),
);

function labelOf(member: string): string {
  return LABELS.get(member) ?? member;
}
