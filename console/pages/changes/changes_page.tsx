import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { callApi } from '../../api/call_api.ts';
import { RESOURCES, recordPages } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useShortcuts } from '../../layout/keys.tsx';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute, href, navigate, replaceQuery } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, Loaded, Loading, ProblemNote, useCountdown } from '../../parts/notices.tsx';
import { memberLabel, resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { LiveList } from '../../parts/virtual_list.tsx';
import { hasScope, type SessionState, session } from '../../session/session.ts';
import { type Entry, type Filters, filtersFromQuery, matchesFilters } from './entry.ts';
import { EntryDialog } from './entry_dialog.tsx';
import { ENTRIES_MAX, type Feed, type FeedView, openFeed } from './feed.ts';
import { FilterBar } from './filter_bar.tsx';

/** The live changes of a realm. */
export function ChangesPage() {
  const state = useObservable(session);
  const fetched = useFetch((signal) => readRealms(state, signal), []);
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

function Changes({ realms }: { readonly realms: FeedRealms }) {
  const { query } = useObservable(currentRoute);
  const [filters, setFilters] = useFilters(realms, query);
  const entry = Number(query.get('entry') ?? 0);
  const feed = useMemo(() => openFeed(filters.realm), [filters.realm]);
  useEffect(() => () => feed.close(), [feed]);
  const view = useObservable(feed.view);
  const shown = useMemo(
    () => view.entries.filter((each) => matchesFilters(filters, each)),
    [view.entries, filters],
  );
  const togglePaused = () => feed.pause(!feed.view.get().isPaused);
  useShortcuts(useMemo(() => [{ keys: 'p', label: 'Pause or resume', run: togglePaused }], [feed]));
  const hrefWith = (seq?: number) =>
    `${href('changes')}?${new URLSearchParams({ ...filters, ...(seq === undefined ? {} : { entry: String(seq) }) })}`;
  return (
    <>
      <FilterBar realms={realms} filters={filters} entries={view.entries} onFilters={setFilters} />
      <div class="live-bar">
        <StreamStatus view={view} />
        <button type="button" class="button" aria-pressed={view.isPaused} onClick={togglePaused}>
          <Icon name={view.isPaused ? 'go' : 'pause'} />
          {view.isPaused ? `Resume${view.waiting > 0 ? ` (${view.waiting} new)` : ''}` : 'Pause'}
        </button>
      </div>
      {view.hasGap && (
        <p class="note note-warn" role="status">
          <Icon name="warning" /> Some changes are missing: they are too old for the feed, or the database was
          restored. The list starts over.
        </p>
      )}
      <Entries feed={feed} view={view} shown={shown} hrefOf={hrefWith} hasFilters={hasFilters(filters)} />
      {entry > 0 && (
        <EntryDialog
          realm={filters.realm}
          seq={entry}
          entry={view.entries.find(({ seq }) => seq === entry)}
          isSearching={!view.isWhole && (view.entries.at(-1)?.seq ?? entry) > entry}
          searchOlder={feed.readOlder}
          onClose={() => navigate(hrefWith())}
        />
      )}
    </>
  );
}

/** The filters, from the address or as chosen since. */
function useFilters(realms: FeedRealms, query: URLSearchParams) {
  const read = () => {
    const chosen = filtersFromQuery(query);
    return { ...chosen, realm: chosen.realm || (realms.all[0]?.id ?? '') };
  };
  const [filters, setFilters] = useState<Filters>(read);
  // Put the realm into the address, so that it can be shared.
  useEffect(() => {
    if (!query.has('realm')) replaceQuery({ ...filters });
  }, []);
  useEffect(() => setFilters(read()), [query]);
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
  readonly hrefOf: (seq: number) => string;
  readonly hasFilters: boolean;
}

/** Changes to search automatically for a filter with few matches. */
const SEARCHED_ENTRIES = 2_000;

function Entries({ feed, view, shown, hrefOf, hasFilters }: EntriesProps) {
  const [searched, setSearched] = useState(SEARCHED_ENTRIES);
  const isEnough = view.entries.length >= searched;
  const onEnd = useCallback(() => {
    if (!isEnough || shown.length > 0) feed.readOlder();
  }, [feed, isEnough, shown.length, view.entries.length]);
  const hasBegun = view.entries.length > 0 || view.isWhole;
  useEffect(() => {
    if (hasBegun && shown.length === 0 && !view.problem) onEnd();
  }, [hasBegun, shown.length, onEnd, view.problem]);
  if (!hasBegun) return view.stream.kind === 'opening' ? <Loading /> : null;
  const isLooking = !view.isWhole && !isEnough && shown.length === 0;
  return (
    <>
      {shown.length > 0 && (
        <LiveList
          label="Changes, newest first"
          items={shown}
          keyOf={({ seq }) => seq}
          row={(entry) => <EntryRow entry={entry} href={hrefOf(entry.seq)} />}
          onEnd={onEnd}
        />
      )}
      {isLooking && <Loading />}
      {shown.length === 0 && !isLooking && (
        <EmptyState icon="changes" title={hasFilters ? 'No matching changes' : 'No changes yet'}>
          <p>
            {hasFilters
              ? `Searched the newest ${view.entries.length} changes. New matching changes appear here.`
              : 'Writes in this realm appear here.'}
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
  return isWhole ? `${found} changes: everything the feed retains.` : `${found} changes. Scroll for more.`;
}

const BADGES: Readonly<Record<string, string>> = {
  created: 'badge badge-good',
  updated: 'badge',
  deleted: 'badge badge-warn',
  erased: 'badge badge-danger',
};

/** A row of the list; its link opens the details. */
function EntryRow({ entry, href }: { readonly entry: Entry; readonly href: string }) {
  const { kind, what, label, members, record, who, at } = entry;
  const { one, icon } = resourceLabel(kind);
  return (
    <a class="row entry-row" href={href}>
      <Icon name={icon} />
      <span class="entry-what">
        <span class="entry-noun">{one}</span> <span class={BADGES[what] ?? 'badge'}>{what}</span>
      </span>
      <span class="row-main">
        <span>
          {label === undefined ? <code class="small">{record}</code> : <UntrustedText text={label} />}
        </span>
        {members.length > 0 && <span class="faint">{members.map(memberLabel).join(', ')}</span>}
      </span>
      <span class="entry-who faint small">
        <UntrustedText text={who} />
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

/** A realm with changes. */
interface FeedRealm {
  readonly id: string;
  /** Undefined if it is deleted or not readable. */
  readonly name: string | undefined;
}

export interface FeedRealms {
  /** Most recently changed first. */
  readonly all: readonly FeedRealm[];
  /** Whether there are more. */
  readonly hasMore: boolean;
}

interface FeedHeads {
  readonly data: readonly { readonly realm_id: string; readonly time: string }[];
  readonly meta: { readonly has_more: boolean };
}

/** The realms whose changes this session can read. */
async function readRealms(state: SessionState, signal: AbortSignal): Promise<FeedRealms> {
  const [heads, names] = await Promise.all([
    callApi<FeedHeads>({ path: 'v2/changes', signal, scope: 'changes:read' }),
    namesOf(state, signal),
  ]);
  const { data, meta } = heads.body;
  const newest = [...data].sort((one, other) => other.time.localeCompare(one.time));
  return {
    all: newest.map(({ realm_id: id }) => ({ id, name: names.get(id) })),
    hasMore: meta.has_more,
  };
}

/** The names of one page of realms; others are shown by ID. */
async function namesOf(state: SessionState, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { realms } = RESOURCES;
  if (!hasScope(state, `${realms.scope}:read`)) return new Map();
  const { items } = await recordPages(realms, [])('', signal);
  return new Map(items.map(({ id, name }) => [id, String(name)]));
}
