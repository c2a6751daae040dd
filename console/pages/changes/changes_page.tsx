import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { useAsked } from '../../api/answers.ts';
import { PageHead } from '../../layout/head.tsx';
import { useShortcuts } from '../../layout/keys.tsx';
import { go, href, keepQuery, place } from '../../layout/router.ts';
import { useObserved } from '../../observable.ts';
import { GrowingRows } from '../../parts/growing_rows.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty, ProblemNote, Waiting } from '../../parts/notices.tsx';
import { session } from '../../session/session.ts';
import { type Entry, type Filters, filtersIn, isWanted } from './entry.ts';
import { EntryDialog } from './entry_dialog.tsx';
import { EntryRow } from './entry_row.tsx';
import { ENTRIES_MAX, type Feed, type FeedView, openFeed } from './feed.ts';
import { FilterBar } from './filter_bar.tsx';
import { FollowingNote } from './following_note.tsx';
import { type Realms, readRealms } from './realms.ts';

/** What happens in a realm, as it happens. */
export function ChangesPage() {
  const state = useObserved(session);
  const asked = useAsked((signal) => readRealms(state, signal), []);
  return (
    <>
      <PageHead title="Changes" />
      <Answered asked={asked}>
        {(realms) =>
          realms.all.length === 0 ? (
            <Empty icon="changes" title="Nothing has changed yet">
              <p>
                Every write in a realm shows up here as it happens. Make a realm to begin with, or import
                records.
              </p>
            </Empty>
          ) : (
            <Changes realms={realms} />
          )
        }
      </Answered>
    </>
  );
}

function Changes({ realms }: { readonly realms: Realms }) {
  const { query } = useObserved(place);
  const [filters, setFilters] = useFilters(realms, query);
  const entry = Number(query.get('entry') ?? 0);
  const feed = useMemo(() => openFeed(filters.realm), [filters.realm]);
  useEffect(() => () => feed.close(), [feed]);
  const view = useObserved(feed.view);
  const shown = useMemo(
    () => view.entries.filter((each) => isWanted(filters, each)),
    [view.entries, filters],
  );
  const turn = () => feed.pause(!feed.view.get().isPaused);
  useShortcuts(
    useMemo(() => [{ keys: 'p', words: 'Pause the changes, or let them go on', act: turn }], [feed]),
  );
  const here = (seq?: number) =>
    `${href('changes')}?${new URLSearchParams({ ...filters, ...(seq === undefined ? {} : { entry: String(seq) }) })}`;
  return (
    <>
      <FilterBar realms={realms} filters={filters} entries={view.entries} onFilters={setFilters} />
      <div class="live-bar">
        <FollowingNote view={view} />
        <button type="button" class="button" aria-pressed={view.isPaused} onClick={turn}>
          <Icon name={view.isPaused ? 'go' : 'pause'} />
          {view.isPaused ? `Go on${view.waiting > 0 ? ` (${view.waiting} waiting)` : ''}` : 'Pause'}
        </button>
      </div>
      {view.hasGap && (
        <p class="note note-warn" role="status">
          <Icon name="warning" /> What happened in between is not in the feed any more: it is too old, or the
          database was put back. The list begins anew.
        </p>
      )}
      <Entries feed={feed} view={view} shown={shown} hrefOf={here} isFiltered={isFiltered(filters)} />
      {entry > 0 && (
        <EntryDialog
          realm={filters.realm}
          seq={entry}
          entry={view.entries.find(({ seq }) => seq === entry)}
          isSought={!view.isWhole && (view.entries.at(-1)?.seq ?? entry) > entry}
          seek={feed.readOlder}
          onClose={() => go(here())}
        />
      )}
    </>
  );
}

/** The filters, as the address says them or as they were chosen since. */
function useFilters(realms: Realms, query: URLSearchParams) {
  const read = () => {
    const said = filtersIn(query);
    return { ...said, realm: said.realm || (realms.all[0]?.id ?? '') };
  };
  const [filters, setFilters] = useState<Filters>(read);
  // The address says which realm it is, so that it leads others to the same.
  useEffect(() => {
    if (!query.has('realm')) keepQuery({ ...filters });
  }, []);
  useEffect(() => setFilters(read()), [query]);
  const choose = (chosen: Filters) => {
    keepQuery({ ...chosen });
    setFilters(chosen);
  };
  return [filters, choose] as const;
}

function isFiltered({ kind, what, who }: Filters): boolean {
  return kind !== '' || what !== '' || who !== '';
}

interface EntriesProps {
  readonly feed: Feed;
  readonly view: FeedView;
  readonly shown: readonly Entry[];
  readonly hrefOf: (seq: number) => string;
  readonly isFiltered: boolean;
}

/** Pages that are read by themselves for a filter that finds little. */
const SEARCHED_ENTRIES = 2_000;

function Entries({ feed, view, shown, hrefOf, isFiltered }: EntriesProps) {
  const [searched, setSearched] = useState(SEARCHED_ENTRIES);
  const isEnough = view.entries.length >= searched;
  const onEnd = useCallback(() => {
    if (!isEnough || shown.length > 0) feed.readOlder();
  }, [feed, isEnough, shown.length, view.entries.length]);
  const hasBegun = view.entries.length > 0 || view.isWhole;
  useEffect(() => {
    if (hasBegun && shown.length === 0 && !view.problem) onEnd();
  }, [hasBegun, shown.length, onEnd, view.problem]);
  if (!hasBegun) return view.following.kind === 'opening' ? <Waiting /> : null;
  const isLooking = !view.isWhole && !isEnough && shown.length === 0;
  return (
    <>
      {shown.length > 0 && (
        <GrowingRows
          label="Changes, the newest first"
          items={shown}
          keyOf={({ seq }) => seq}
          row={(entry) => <EntryRow entry={entry} href={hrefOf(entry.seq)} />}
          onEnd={onEnd}
        />
      )}
      {isLooking && <Waiting />}
      {shown.length === 0 && !isLooking && (
        <Empty icon="changes" title={isFiltered ? 'No change is like this' : 'Nothing has changed yet'}>
          <p>
            {isFiltered
              ? `Looked through the newest ${view.entries.length} changes. What comes is shown as soon as it fits.`
              : 'What is written in this realm shows up here.'}
          </p>
          {!view.isWhole && (
            <button type="button" class="button" onClick={() => setSearched(searched + SEARCHED_ENTRIES)}>
              Look further back
            </button>
          )}
        </Empty>
      )}
      {view.problem && <ProblemNote problem={view.problem} again={feed.readOlder} />}
      <p class="faint small list-foot">{footOf(view, shown.length)}</p>
    </>
  );
}

function footOf({ entries, isWhole }: FeedView, shown: number): string {
  const count = entries.length.toLocaleString();
  const found = shown === entries.length ? count : `${shown.toLocaleString()} of ${count}`;
  if (entries.length >= ENTRIES_MAX) return `${found} changes. This page holds no more of them.`;
  return isWhole ? `${found} changes: all that the feed keeps.` : `${found} changes, more as you scroll.`;
}
