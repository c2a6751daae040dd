import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { type RealmNames, readNamesOfRealms } from '../../api/realm_names.ts';
import type { NamedRealm } from '../../api/records.ts';
import type { Fetched } from '../../api/use_fetch.ts';
import { SelectField } from '../../form/fields.tsx';
import { plainText } from '../../parts/confusables.ts';

/** The names of these realms by ID, as far as they could be read: those to choose from, and the others one by one. */
export function useRealmNames(
  shown: readonly string[],
  { answer, isWaiting }: Fetched<readonly NamedRealm[] | undefined>,
): RealmNames {
  const names = useMemo<RealmNames>(() => new Map(), []);
  const [, draw] = useState({});
  useEffect(() => {
    if (isWaiting) return;
    for (const { id, name } of answer ?? []) names.set(id, name);
    const drawAgain = () => draw({});
    readNamesOfRealms(shown, names).then(drawAgain, drawAgain);
  }, [shown, answer, isWaiting]);
  return names;
}

interface RealmFilterProps {
  /** The ID; empty for all realms. */
  readonly realm: string;
  /** Undefined if they are too many to choose from, or unknown. */
  readonly realms: readonly NamedRealm[] | undefined;
  readonly onRealm: (realm: string) => void;
}

/** Limits a list to one realm, chosen by its name, or by its ID if there are too many. */
export function RealmFilter({ realm, realms = [], onRealm }: RealmFilterProps) {
  const id = useId();
  const isListed = realm === '' || realms.some((each) => each.id === realm);
  const listed = isListed ? realms : [{ id: realm, name: realm }, ...realms];
  if (listed.length > 0)
    return (
      <SelectField
        label="Realm"
        value={realm}
        options={[
          { id: '', label: 'All realms' },
          ...listed.map(({ id, name }) => ({ id, label: plainText(name) })),
        ]}
        onValue={onRealm}
      />
    );
  return (
    <div class="field">
      <label for={id}>Realm, by ID</label>
      <input
        id={id}
        spellcheck={false}
        autocomplete="off"
        placeholder="All realms"
        onChange={({ currentTarget }) => onRealm(currentTarget.value.trim())}
      />
    </div>
  );
}
