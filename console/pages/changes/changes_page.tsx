import { useEffect, useId, useMemo } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { useRetryAfter } from '../../api/use_fetch.ts';
import { SelectField } from '../../form/fields.tsx';
import { PageHead } from '../../layout/page.tsx';
import { currentRoute, href, navigate, replaceLocation } from '../../layout/router.ts';
import { useObservable } from '../../observable.ts';
import { Icon } from '../../parts/icon.tsx';
import { LongList } from '../../parts/long_list.tsx';
import { EmptyState, Loading, ProblemNote } from '../../parts/notices.tsx';
import { RealmName } from '../../parts/realm_name.tsx';
import { capitalized, memberLabel, resourceLabel } from '../../parts/resource_labels.ts';
import { Timestamp } from '../../parts/timestamp.tsx';
import { UntrustedText } from '../../parts/untrusted_text.tsx';
import { useDebounced } from '../../parts/use_debounced.ts';
import { RealmPicker } from '../try/record_picker.tsx';
import { actorId, actorName, useClients } from './actors.ts';
import { type ChangeList, isFinal, type ListView, openChangeList } from './change_list.ts';
import { CONDITIONS, type Conditions, type Entry, isLink } from './entry.ts';
import { EntryDialog } from './entry_dialog.tsx';

/** The conditions as the page shows them: an actor may be a name, and times are days here. */
type Filters = Required<Conditions>;

/** The changes of all realms, or of one. */
export function ChangesPage() {
  const { query } = useObservable(currentRoute);
  const filters = Object.fromEntries(CONDITIONS.map((name) => [name, query.get(name) ?? ''])) as Filters;
  const clients = useClients();
  const search = useDebounced(
    JSON.stringify({
      ...filters,
      actor: actorId(clients, filters.actor.trim()),
      from: instantOf(filters.from, '00:00:00.000'),
      to: instantOf(filters.to, '23:59:59.999'),
    }),
  );
  const list = useMemo(() => openChangeList(JSON.parse(search)), [search]);
  useEffect(() => list.close, [list]);
  const view = useObservable(list.view);
  const { entries, problem } = view;
  const addressOf = (chosen: Filters, entry?: Entry) => {
    const named = entry && { entry: String(entry.seq), in: entry.realm_id, at: entry.at };
    const given = Object.entries({ ...chosen, ...named }).filter(([, text]) => text !== '');
    return `${href('changes')}${given.length > 0 ? `?${new URLSearchParams(given)}` : ''}`;
  };
  const [seq, realm, at] = [Number(query.get('entry') ?? 0), query.get('in') ?? '', query.get('at') ?? ''];
  return (
    <>
      <PageHead title="Changes" />
      <FilterBar filters={filters} onFilters={(chosen) => replaceLocation(addressOf(chosen))} />
      <p class="live" role="status">
        <span class={problem ? 'live-dot live-off' : 'live-dot'} />
        <span>{problem ? 'Not live.' : 'Live'}</span>
        {isFinal(problem) && 'The list is no longer updated.'}
      </p>
      {entries.length > 0 && (
        <LongList
          label="Changes, newest first"
          items={entries}
          keyOf={({ key }) => key}
          row={(entry) => (
            <EntryRow
              entry={entry}
              actor={actorName(clients, entry.client_id)}
              hasRealm={filters.realm === ''}
              address={addressOf(filters, entry)}
            />
          )}
          onMore={view.next === undefined ? undefined : list.readOlder}
        />
      )}
      <ListEnd {...{ list, view }} hasFilters={Object.values(filters).some((text) => text !== '')} />
      {seq > 0 && (
        <EntryDialog
          named={{ realm, at, seq }}
          loaded={entries.find((each) => each.seq === seq && each.realm_id === realm)}
          clients={clients}
          onClose={() => navigate(addressOf(filters))}
        />
      )}
    </>
  );
}

/** The instant of a time of a day here; the text itself if it is no day. */
function instantOf(day: string, time: string): string {
  const at = new Date(`${day}T${time}`);
  return Number.isNaN(at.getTime()) ? day : at.toISOString();
}

const KINDS = [
  { id: '', label: 'All kinds' },
  ...Object.values(RESOURCES).map(({ name: id, words }) => ({ id, label: capitalized(words[1]) })),
];
const EVENTS = [
  { id: '', label: 'All events' },
  ...['created', 'updated', 'deleted', 'erased'].map((id) => ({ id, label: capitalized(id) })),
];
const INPUTS = [
  { name: 'actor', label: 'Actor', type: 'text' },
  { name: 'user', label: 'User ID', type: 'text' },
  { name: 'record', label: 'Record ID', type: 'text' },
  { name: 'from', label: 'From', type: 'date' },
  { name: 'to', label: 'To', type: 'date' },
] as const;

interface FilterBarProps {
  readonly filters: Filters;
  readonly onFilters: (filters: Filters) => void;
}

function FilterBar({ filters, onFilters }: FilterBarProps) {
  const ids = useId();
  const choose = (name: keyof Filters) => (text: string) => onFilters({ ...filters, [name]: text });
  return (
    <search class="filters" aria-label="Filter changes">
      <RealmPicker realm={filters.realm} onRealm={choose('realm')} />
      <SelectField label="Kind" value={filters.kind} options={KINDS} onValue={choose('kind')} />
      <SelectField label="Event" value={filters.event} options={EVENTS} onValue={choose('event')} />
      {INPUTS.map(({ name, label, type }) => (
        <div key={name} class="field">
          <label for={ids + name}>{label}</label>
          <input
            id={ids + name}
            type={type as 'text'}
            value={filters[name]}
            placeholder="Any"
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => choose(name)(currentTarget.value)}
          />
        </div>
      ))}
    </search>
  );
}

interface ListEndProps {
  readonly list: ChangeList;
  readonly view: ListView;
  readonly hasFilters: boolean;
}

/** What follows the rows: how far back the search has looked. */
function ListEnd({ list, view, hasFilters }: ListEndProps) {
  const { entries, next, searchedTo, problem, isReading } = view;
  useRetryAfter(problem, list.retry);
  if (problem) return <ProblemNote problem={problem} reload={list.retry} />;
  if (entries.length === 0 && isReading) return <Loading />;
  const count = `${entries.length.toLocaleString()} ${entries.length === 1 ? 'change' : 'changes'}`;
  return (
    <>
      {entries.length === 0 && (
        <EmptyState icon="changes" title={hasFilters ? 'No matching changes' : 'No changes yet'}>
          <p>New matching changes appear here.</p>
          {next !== undefined && (
            <button type="button" class="button" disabled={isReading} onClick={list.readOlder}>
              Search older changes
            </button>
          )}
        </EmptyState>
      )}
      <p class="faint small list-foot">
        {next === undefined && `${count}: everything the feed retains was searched.`}
        {searchedTo && (
          <>
            {count}, searched back to <Timestamp at={searchedTo} />.
          </>
        )}
      </p>
    </>
  );
}

const BADGES: Readonly<Record<string, string>> = {
  created: 'badge badge-good',
  updated: 'badge',
  deleted: 'badge badge-warn',
  erased: 'badge badge-danger',
};

interface EntryRowProps {
  readonly entry: Entry;
  readonly actor: string;
  /** Whether it shows the realm: changes of other realms may be listed too. */
  readonly hasRealm: boolean;
  readonly address: string;
}

/** A row of the list; its link opens the details. */
function EntryRow({ entry, actor, hasRealm, address }: EntryRowProps) {
  const { kind, what, members, record_id: record, at, label } = entry;
  // Writing a link also updates the time of its user, which is no news.
  const named = members.filter((member) => member !== 'updated_at');
  const { one, icon } = resourceLabel(kind);
  return (
    <a class="row entry-row" href={address}>
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
          {hasRealm && (
            <span class="faint">
              {' · '}
              <RealmName id={entry.realm_id} />
            </span>
          )}
        </span>
        {named.length > 0 && <span class="faint">{named.map(memberLabel).join(', ')}</span>}
      </span>
      <span class="entry-who faint small">
        <UntrustedText text={actor} />
      </span>
      <span class="row-side faint small">
        <Timestamp at={at} />
      </span>
    </a>
  );
}
