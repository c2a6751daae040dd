import { useId, useMemo } from 'preact/hooks';
import { RESOURCES } from '../../api/records.ts';
import { SelectField } from '../../form/fields.tsx';
import { plainText } from '../../parts/confusables.ts';
import { capitalized, resourceLabel } from '../../parts/resource_labels.ts';
import type { NameActor } from './actors.ts';
import { CHANGE_KINDS, type Entry, type Filters } from './entry.ts';
import type { FeedRealms } from './feed_heads.ts';

interface FilterBarProps {
  readonly realms: FeedRealms;
  readonly filters: Filters;
  /** The loaded changes, for suggestions of actors. */
  readonly entries: readonly Entry[];
  readonly nameActor: NameActor;
  readonly onFilters: (filters: Filters) => void;
}

/** The filters of the list. */
export function FilterBar({ realms, filters, entries, nameActor, onFilters }: FilterBarProps) {
  const ids = useId();
  const actors = useMemo(() => [...new Set(entries.map(({ who }) => who))], [entries]);
  const writers = [...new Set(actors.map(nameActor))].sort();
  const choose = (part: Partial<Filters>) => onFilters({ ...filters, ...part });
  const isListed = filters.realm === '' || realms.all.some(({ id }) => id === filters.realm);
  const listed = isListed ? realms.all : [{ id: filters.realm, name: undefined }, ...realms.all];
  const kinds = Object.values(RESOURCES).map(({ name }) => ({
    id: name,
    label: capitalized(resourceLabel(name).many),
  }));
  return (
    <search class="filters" aria-label="Filter changes">
      <SelectField
        label="Realm"
        value={filters.realm}
        options={[
          { id: '', label: 'All realms' },
          ...listed.map(({ id, name }) => ({ id, label: name === undefined ? id : plainText(name) })),
        ]}
        onValue={(realm) => choose({ realm })}
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
      <SelectField
        label="Kind"
        value={filters.kind}
        options={[{ id: '', label: 'All kinds' }, ...kinds]}
        onValue={(kind) => choose({ kind })}
      />
      <SelectField
        label="Event"
        value={filters.what}
        options={[
          { id: '', label: 'All events' },
          ...CHANGE_KINDS.map((id) => ({ id, label: capitalized(id) })),
        ]}
        onValue={(what) => choose({ what })}
      />
      <div class="field">
        <label for={`${ids}-who`}>Actor</label>
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
