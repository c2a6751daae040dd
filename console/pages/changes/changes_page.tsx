import { useEffect, useMemo, useState } from 'preact/hooks';
import { useFetch, useRetryAfter } from '../../api/use_fetch.ts';
import { useShortcuts } from '../../layout/keys.tsx';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute, href, navigate, replaceQuery } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { EmptyState, Loaded, Loading, ProblemNote, useCountdown } from '../../parts/notices.tsx';
import { memberLabel, resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { hasScope, session } from '../../session/session.ts';
import { type NameActor, useActorNames } from './actors.ts';
import { openAllRealmsFeed } from './all_realms_feed.ts';
import { type Entry, entryKey, type Filters, filtersFromQuery, isLink, matchesFilters } from './entry.ts';
import { EntryDialog } from './entry_dialog.tsx';
import { ENTRIES_MAX, type Feed, type FeedView, openFeed, type Restart } from './feed.ts';
import { type FeedRealms, readFeedRealms } from './feed_heads.ts';
import { FilterBar } from './filter_bar.tsx';
import { type LastKnownNames, openLastKnownNames } from './last_known.ts';

/** The live changes of all realms, or of one. */
export function ChangesPage() {
  const state = useObservable(session);
  const fetched = useFetch((signal) => readFeedRealms(state, signal), []);
  return (
    <>
      <PageHead title="Changes" />
      <Loaded fetched={fetched}>
        {(realms) =>
          realms.all.length === 0 ? (
            <EmptyState icon="changes" title="No changes yet">
              <p>
                Every write in a realm appears here as it happens. Create a realm or import records to start.
              </p>
            </EmptyState>
          ) : (
            <Changes realms={realms} />
          )
        }
      </Loaded>
    </>
  );
}

const RESTARTS: Readonly<Record<Restart, string>> = {
  gone: 'Some changes are missing: they are too old for the feed, or the database was restored.',
  too_many: 'More than 1,000 changes of one realm came at once.',
};

function Changes({ realms }: { readonly realms: FeedRealms }) {
  const { query } = useObservable(currentRoute);
  const [filters, setFilters] = useFilters(query);
  const nameActor = useActorNames();
  const entry = Number(query.get('entry') ?? 0);
  const realm = filters.realm || (query.get('in') ?? '');
  const feed = useMemo(
    () => (filters.realm === '' ? openAllRealmsFeed() : openFeed(filters.realm)),
    [filters.realm],
  );
  useEffect(() => () => feed.close(), [feed]);
  const view = useObservable(feed.view);
  const shown = useMemo(
    () => view.entries.filter((each) => matchesFilters(filters, each, nameActor)),
    [view.entries, filters, nameActor],
  );
  const togglePaused = () => feed.pause(!feed.view.get().isPaused);
  useShortcuts(useMemo(() => [{ keys: 'p', label: 'Pause or resume', run: togglePaused }], [feed]));
  const hrefWith = (chosen?: Entry) => {
    const named = chosen && {
      entry: String(chosen.seq),
      ...(filters.realm === '' ? { in: chosen.realm } : {}),
    };
    return `${href('changes')}?${new URLSearchParams({ ...filters, ...named })}`;
  };
  return (
    <>
      <FilterBar {...{ realms, filters, nameActor }} entries={view.entries} onFilters={setFilters} />
      <div class="live-bar">
        <StreamStatus view={view} />
        <button type="button" class="button" aria-pressed={view.isPaused} onClick={togglePaused}>
          <Icon name={view.isPaused ? 'go' : 'pause'} />
          {view.isPaused ? `Resume${view.waiting > 0 ? ` (${view.waiting} new)` : ''}` : 'Pause'}
        </button>
      </div>
      {view.restart && (
        <p class="note note-warn" role="status">
          <Icon name="warning" /> {RESTARTS[view.restart]} The list starts over.
        </p>
      )}
      {filters.realm === '' && realms.hasMore && (
        <p class="note">Showing the changes of {realms.heads.length} realms: choose another one by its ID.</p>
      )}
      <Entries
        {...{ feed, view, shown, nameActor }}
        realms={filters.realm === '' ? realms : undefined}
        hrefOf={hrefWith}
        hasFilters={hasFilters(filters)}
      />
      {entry > 0 && (
        <EntryDialog
          {...{ realm, nameActor }}
          loaded={view.entries}
          seq={entry}
          isSearching={
            !view.isWhole &&
            (filters.realm === ''
              ? view.entries.length < SEARCHED_ENTRIES
              : (view.entries.at(-1)?.seq ?? entry) > entry)
          }
          searchOlder={feed.readOlder}
          onClose={() => navigate(hrefWith())}
        />
      )}
    </>
  );
}

/** The filters, from the address or as chosen since. */
function useFilters(query: URLSearchParams) {
  const [filters, setFilters] = useState<Filters>(() => filtersFromQuery(query));
  useEffect(() => setFilters(filtersFromQuery(query)), [query]);
  const choose = (chosen: Filters) => {
    replaceQuery({ ...chosen });
    setFilters(chosen);
  };
  return [filters, choose] as const;
}

function hasFilters({ kind, what, who }: Filters): boolean {
  return kind !== '' || what !== '' || who !== '';
}

interface EntriesProps {
  readonly feed: Feed;
  readonly view: FeedView;
  readonly shown: readonly Entry[];
  readonly nameActor: NameActor;
  /** Of the changes, if they are not all of one realm. */
  readonly realms: FeedRealms | undefined;
  readonly hrefOf: (entry: Entry) => string;
  readonly hasFilters: boolean;
}

/** Changes to search automatically for a filter with few matches. */
const SEARCHED_ENTRIES = 2_000;

function Entries({ feed, view, shown, nameActor, realms, hrefOf, hasFilters }: EntriesProps) {
  const isAdmin = hasScope(useObservable(session), 'admin');
  const lastKnown = useMemo(() => (isAdmin ? openLastKnownNames() : undefined), [isAdmin]);
  const realmNames = useMemo(() => new Map(realms?.all.map(({ id, name }) => [id, name ?? id])), [realms]);
  const [searched, setSearched] = useState(SEARCHED_ENTRIES);
  useRetryAfter(view.problem, feed.readOlder);
  const isEnough = view.entries.length >= searched;
  const hasBegun = view.entries.length > 0 || view.isWhole;
  const isLooking = hasBegun && !view.isWhole && !isEnough && shown.length === 0;
  useEffect(() => {
    if (isLooking && !view.problem) feed.readOlder();
  }, [feed, isLooking, view.entries.length, view.problem]);
  if (!hasBegun) return view.stream.kind === 'opening' ? <Loading /> : null;
  const isOlderRead = view.isWhole || view.entries.length >= ENTRIES_MAX;
  return (
    <>
      {shown.length > 0 && (
        <LongList
          label="Changes, newest first"
          items={shown}
          keyOf={entryKey}
          row={(entry) => (
            <EntryRow
              {...{ entry, nameActor, lastKnown }}
              realm={realms && (realmNames.get(entry.realm) ?? entry.realm)}
              href={hrefOf(entry)}
            />
          )}
          onMore={isOlderRead ? undefined : feed.readOlder}
        />
      )}
      {isLooking && <Loading />}
      {shown.length === 0 && !isLooking && (
        <EmptyState icon="changes" title={hasFilters ? 'No matching changes' : 'No changes yet'}>
          <p>
            {hasFilters
              ? `Searched the newest ${view.entries.length} changes. New matching changes appear here.`
              : 'Writes appear here.'}
          </p>
          {!view.isWhole && (
            <button type="button" class="button" onClick={() => setSearched(searched + SEARCHED_ENTRIES)}>
              Load older changes
            </button>
          )}
        </EmptyState>
      )}
      {view.problem && <ProblemNote problem={view.problem} reload={feed.readOlder} />}
      <p class="faint small list-foot">{footOf(view, shown.length)}</p>
    </>
  );
}

function footOf({ entries, isWhole }: FeedView, shown: number): string {
  const count = entries.length.toLocaleString();
  const found = shown === entries.length ? count : `${shown.toLocaleString()} of ${count}`;
  if (entries.length >= ENTRIES_MAX) return `${found} changes. This is the maximum for this page.`;
  return isWhole ? `${found} changes: everything the feed retains.` : `${found} changes so far.`;
}

const BADGES: Readonly<Record<string, string>> = {
  created: 'badge badge-good',
  updated: 'badge',
  deleted: 'badge badge-warn',
  erased: 'badge badge-danger',
};

interface EntryRowProps {
  readonly entry: Entry;
  /** The name of its realm, if the list has several. */
  readonly realm: string | undefined;
  readonly nameActor: NameActor;
  /** Undefined if this session cannot read the audit log. */
  readonly lastKnown: LastKnownNames | undefined;
  readonly href: string;
}

/** The name of the record, or the last one of a deleted record. */
function useLabel(entry: Entry, lastKnown: LastKnownNames | undefined): string | undefined {
  const { label, isGone, record } = entry;
  const { answer } = useFetch(
    async (signal) => (label === undefined && isGone ? lastKnown?.of(entry, signal) : undefined),
    [record, isGone, lastKnown !== undefined],
  );
  return label ?? answer;
}

/** A row of the list; its link opens the details. */
function EntryRow({ entry, realm, nameActor, lastKnown, href }: EntryRowProps) {
  const { kind, what, members, record, who, at } = entry;
  const label = useLabel(entry, lastKnown);
  // Writing a link also updates the time of its user, which is no news.
  const named = members.filter((member) => member !== 'updated_at');
  const { one, icon } = resourceLabel(kind);
  return (
    <a class="row entry-row" href={href}>
      <Icon name={icon} />
      <span class="entry-what">
        <span class="entry-noun">{one}</span> <span class={BADGES[what] ?? 'badge'}>{what}</span>
      </span>
      <span class="row-main">
        <span class="entry-label">
          <span>
            {label === undefined ? (
              <code class="small">{record}</code>
            ) : (
              <UntrustedText text={label} isIdentifier={isLink(entry)} />
            )}
          </span>
          {realm !== undefined && (
            <span class="faint">
              {' · '}
              <UntrustedText text={realm} />
            </span>
          )}
        </span>
        {named.length > 0 && <span class="faint">{named.map(memberLabel).join(', ')}</span>}
      </span>
      <span class="entry-who faint small">
        <UntrustedText text={nameActor(who)} />
      </span>
      <span class="row-side faint small">
        <Timestamp at={at} />
      </span>
    </a>
  );
}

/** The state of the stream. */
function StreamStatus({ view }: { readonly view: FeedView }) {
  const { stream, isPaused } = view;
  const secondsLeft = useCountdown(stream.kind === 'retrying' ? stream.seconds : 0, stream);
  if (stream.kind === 'live') {
    return (
      <p class="live" role="status">
        <span class={isPaused ? 'live-dot live-held' : 'live-dot'} />
        {isPaused ? 'Paused. New changes are held back.' : 'Live'}
      </p>
    );
  }
  if (stream.kind === 'opening') {
    return (
      <p class="live faint" role="status">
        <span class="live-dot live-off" />
        Connecting…
      </p>
    );
  }
  return (
    <p class="live" role="status">
      <span class="live-dot live-off" />
      <span>
        <strong>Not live.</strong> {stream.reason}{' '}
        {stream.kind === 'retrying' ? (
          <span aria-hidden="true">{secondsLeft > 0 ? `Retrying in ${secondsLeft} s.` : 'Retrying…'}</span>
        ) : (
          'The list is no longer updated.'
        )}
      </span>
    </p>
  );
}
