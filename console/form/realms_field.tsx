import { useAsked } from '../api/answers.ts';
import { type NamedRealm as Named, readRealmNames } from '../api/realm_names.ts';
import { Said } from '../parts/said.tsx';
import { AllOrSome } from './all_or_some.tsx';

type Realms = '*' | readonly string[];

interface RealmsFieldProps {
  readonly realms: Realms;
  readonly complaint: string;
  readonly onRealms: (realms: Realms) => void;
}

/** All realms, or some of them: chosen by name where they fit into one page, else typed by ID. */
export function RealmsField({ realms, complaint, onRealms }: RealmsFieldProps) {
  const { answer: known } = useAsked(readRealmNames, []);
  return (
    <AllOrSome
      legend="Realms"
      all="All, also those that are made later"
      some="Some"
      value={realms}
      complaint={complaint}
      onValue={onRealms}
    >
      {(some, choose) =>
        known ? (
          <RealmChecks known={withUnknown(known, some)} some={some} onChoose={choose} />
        ) : (
          <textarea
            aria-label="IDs of realms, one a line"
            value={some.join('\n')}
            spellcheck={false}
            onInput={({ currentTarget }) => choose(currentTarget.value.split(/\s+/).filter(Boolean))}
          />
        )
      }
    </AllOrSome>
  );
}

/** A realm that is gone may stand there still. */
function withUnknown(known: readonly Named[], some: readonly string[]): readonly Named[] {
  const gone = some.filter((id) => known.every((each) => each.id !== id));
  return [...known, ...gone.map((id) => ({ id, name: id }))];
}

interface RealmChecksProps {
  readonly known: readonly Named[];
  readonly some: readonly string[];
  readonly onChoose: (chosen: readonly string[]) => void;
}

function RealmChecks({ known, some, onChoose }: RealmChecksProps) {
  if (known.length === 0) return <p class="hint">There is no realm yet.</p>;
  return (
    <div class="choices-list">
      {known.map(({ id, name }) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={some.includes(id)}
            onChange={({ currentTarget }) =>
              onChoose(currentTarget.checked ? [...some, id] : some.filter((each) => each !== id))
            }
          />
          <span>
            <Said text={name} /> <span class="faint small">{id.slice(-SHOWN_DIGITS)}</span>
          </span>
        </label>
      ))}
    </div>
  );
}

/** Realms of one name are told apart by the end of their IDs. */
const SHOWN_DIGITS = 4;
