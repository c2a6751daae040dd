import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { type ApiRecord, type Key, RESOURCES, recordPages } from '../../api/records.ts';
import { useFetch } from '../../api/use_fetch.ts';
import type { Description } from '../../description.ts';
import { useObservable } from '../../observable.ts';
import type { Operation } from '../../openapi/document.ts';
import type { Draft, RequestField } from '../../openapi/request.ts';
import { plainText } from '../../parts/confusables.ts';
import { hasScope, session } from '../../session/session.ts';

/** Paths of administration name realms by another word. */
const COLLECTIONS = new Map([
  ['realms', RESOURCES.realms] as const,
  ...Object.values(RESOURCES).map((each) => [each.collections.at(-1) ?? '', each] as const),
]);

/** How the record of a path parameter is chosen; undefined if a field names no record of the six resources. */
export function pickerOf(
  { path, method }: Operation,
  fields: readonly RequestField[],
  { place, name }: RequestField,
  values: Draft['values'],
): Pick<RecordPickerProps, 'description' | 'parentKey' | 'isUnchosen'> | undefined {
  const segments = path.split('/');
  const index = place === 'path' ? segments.indexOf(`{${name}}`) : -1;
  const description = COLLECTIONS.get(segments[index - 1] ?? '');
  const above = fields.filter((each) => each.place === 'path' && segments.indexOf(`{${each.name}}`) < index);
  if (!description || above.length !== description.collections.length - 1) return undefined;
  const parentKey = above.map(({ key, example }) => (values[key] === example ? '' : (values[key] ?? '')));
  return {
    description,
    parentKey: parentKey.includes('') ? undefined : parentKey,
    isUnchosen: index === segments.length - 1 && method !== 'GET' && method !== 'POST',
  };
}

interface RecordPickerProps {
  readonly id: string;
  readonly description: Description;
  /** Undefined until the records above are chosen. */
  readonly parentKey: Key | undefined;
  readonly value: string;
  /** The example of the document, which names no record. */
  readonly example: string;
  /** Whether no record is chosen at first: the operation would change it. */
  readonly isUnchosen: boolean;
  /** The words of a choice of no record. */
  readonly emptyOption?: string;
  readonly onValue: (value: string) => void;
}

const ANOTHER = 'another';

/** Chooses a record of this directory from a list of the first hundred, or by its ID. */
export function RecordPicker(props: RecordPickerProps) {
  const { id, description, parentKey, value, example, isUnchosen, emptyOption, onValue } = props;
  const state = useObservable(session);
  const isReadable = parentKey !== undefined && hasScope(state, `${description.scope}:read`);
  const { answer: items } = useFetch(
    async (signal): Promise<readonly ApiRecord[]> =>
      isReadable ? (await recordPages(description, parentKey, 'created_at')('', signal)).items : [],
    [isReadable, description.name, ...(parentKey ?? [])],
  );
  const [isTyped, setTyped] = useState(false);
  const chosen = useRef(example);
  const choose = (next: string) => {
    chosen.current = next;
    if (next !== value) onValue(next);
  };
  const isListed = items?.some((each) => each.id === value) ?? false;
  useEffect(() => {
    // A value of the address, or a typed one, stays.
    if (!isReadable || !items || isListed || value !== chosen.current) return;
    choose(isUnchosen ? '' : (items[0]?.id ?? ''));
  }, [items]);
  const [one, many] = description.words;
  const empty = emptyOption ?? (value === '' && `Choose the ${one}…`);
  if (items && items.length > 0 && !isTyped && (isListed || value === '')) {
    return (
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) =>
          currentTarget.value === ANOTHER ? setTyped(true) : choose(currentTarget.value)
        }
      >
        {empty && <option value="">{empty}</option>}
        {items.map((record) => (
          <option key={record.id} value={record.id}>
            {optionText(record)}
          </option>
        ))}
        <option value={ANOTHER}>Another ID…</option>
      </select>
    );
  }
  return (
    <>
      <input
        id={id}
        type="text"
        value={value}
        placeholder={emptyOption && `${emptyOption}, or an ID`}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      {items && items.length > 0 && (
        <button
          type="button"
          class="text-button"
          onClick={() => {
            setTyped(false);
            choose('');
          }}
        >
          Choose from the {many}
        </button>
      )}
      {items && isReadable && items.length === 0 && <p class="hint">There are no {many} yet.</p>}
    </>
  );
}

interface RealmPickerProps {
  /** The ID; empty for all realms. */
  readonly realm: string;
  readonly onRealm: (realm: string) => void;
}

/** Chooses one realm, or all. */
export function RealmPicker({ realm, onRealm }: RealmPickerProps) {
  const id = useId();
  const picker = { id, description: RESOURCES.realms, parentKey: [], example: '', isUnchosen: true };
  return (
    <div class="field">
      <label for={id}>Realm</label>
      <RecordPicker {...picker} emptyOption="All realms" value={realm} onValue={onRealm} />
    </div>
  );
}

/** The end of the ID distinguishes records of the same name. */
const SHOWN_DIGITS = 4;

function optionText({ id, name, subject, username, email }: ApiRecord): string {
  const names = [name ?? subject ?? username, email].filter((each) => typeof each === 'string');
  return `${plainText(names.join(', '))} · ${id.slice(-SHOWN_DIGITS)}`;
}
