import { useId } from 'preact/hooks';
import { useAsked } from '../../api/answers.ts';
import { readRealmNames } from '../../api/realm_names.ts';
import { plainText } from '../../parts/characters.ts';

interface RealmChoiceProps {
  readonly label: string;
  readonly realm: string;
  /** Offered first, where no realm need be chosen. */
  readonly otherwise?: string;
  readonly onRealm: (realm: string) => void;
}

/** A realm, by its name; by its ID where there are too many. */
export function RealmChoice({ label, realm, otherwise, onRealm }: RealmChoiceProps) {
  const id = useId();
  const { answer: known } = useAsked(readRealmNames, []);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {known ? (
        <select id={id} value={realm} onChange={({ currentTarget }) => onRealm(currentTarget.value)}>
          <option value="">{otherwise ?? 'Choose…'}</option>
          {known.map((each) => (
            <option key={each.id} value={each.id}>
              {plainText(each.name)} · {each.id}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          value={realm}
          placeholder={`ID of the realm${otherwise === undefined ? '' : `; empty: ${otherwise}`}`}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => onRealm(currentTarget.value.trim())}
        />
      )}
    </div>
  );
}
