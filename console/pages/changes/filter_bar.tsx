import { useId, useMemo } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { plainText } from '../../parts/confusables.ts';
import { resourceLabel } from '../../parts/resource_labels.ts';
import type { FeedRealms } from './changes_page.tsx';
import { CHANGE_KINDS, type Entry, type Filters } from './entry.ts';

interface FilterBarProps {
  readonly realms: FeedRealms;
  readonly filters: Filters;
  /** The loaded changes, for suggestions of actors. */
  readonly entries: readonly Entry[];
  readonly onFilters: (filters: Filters) => void;
}

/** The filters of the list. */
export function FilterBar({ realms, filters, entries, onFilters }: FilterBarProps) {
  const ids = useId();
  const writers = useMemo(() => [...new Set(entries.map(({ who }) => who))].sort(), [entries]);
  const choose = (part: Partial<Filters>) => onFilters({ ...filters, ...part });
  const isListed = realms.all.some(({ id }) => id === filters.realm);
  const listed = isListed ? realms.all : [{ id: filters.realm, name: undefined }, ...realms.all];
  const kinds = Object.values(RESOURCES).map(({ name }) => ({ id: name, label: resourceLabel(name).many }));
  return (
    <search class="filters" aria-label="Filter changes">
      <Choice
        id={`${ids}-realm`}
        label="Realm"
        value={filters.realm}
        options={listed.map(({ id, name }) => ({ id, label: name === undefined ? id : plainText(name) }))}
        onChoice={(realm) => choose({ realm })}
      />
      {realms.hasMore && (
        <div class="field">
          <label for={`${ids}-id`}>Another realm, by ID</label>
          <input
            id={`${ids}-id`}
            spellcheck={false}
            autocomplete="off"
            onChange={({ currentTarget }) =>
              currentTarget.value.trim() !== '' && choose({ realm: currentTarget.value.trim() })
            }
          />
        </div>
      )}
      <Choice
        id={`${ids}-kind`}
        label="Kind"
        value={filters.kind}
        options={[{ id: '', label: 'All kinds' }, ...kinds]}
        onChoice={(kind) => choose({ kind })}
      />
      <Choice
        id={`${ids}-what`}
        label="Event"
        value={filters.what}
        options={[{ id: '', label: 'All events' }, ...CHANGE_KINDS.map((id) => ({ id, label: id }))]}
        onChoice={(what) => choose({ what })}
      />
      <div class="field">
        <label for={`${ids}-who`}>Who</label>
        <input
          id={`${ids}-who`}
          list={`${ids}-writers`}
          value={filters.who}
          placeholder="Any"
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => choose({ who: currentTarget.value })}
        />
        <datalist id={`${ids}-writers`}>
          {writers.map((who) => (
            <option key={who} value={who} />
          ))}
        </datalist>
      </div>
    </search>
  );
}

interface ChoiceProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly id: string; readonly label: string }[];
  readonly onChoice: (id: string) => void;
}

function Choice({ id, label, value, options, onChoice }: ChoiceProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChoice(currentTarget.value)}>
        {options.map((option) => (
          <option key={option.id} value={option.id}>
            {option.label}
          </option>
        ))}
      </select>
    </div>
  );
}
