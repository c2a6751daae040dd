import { useId } from 'preact/hooks';
import { Prose } from '../../openapi/code.tsx';
import type { Operation } from '../../openapi/document.ts';
import type { Draft, RequestField } from '../../openapi/request.ts';
import { pickerOf, RecordPicker } from './record_picker.tsx';

interface RequestFormProps {
  readonly operation: Operation;
  readonly fields: readonly RequestField[];
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
}

/** The form of a request: parameters, and the body as text. */
export function RequestForm({ operation, fields, draft, onDraft }: RequestFormProps) {
  const id = useId();
  const { values, body } = draft;
  const setValue = (key: string, value: string | undefined) => {
    const { [key]: _, ...others } = values;
    onDraft({ ...draft, values: value === undefined ? others : { ...others, [key]: value } });
  };
  const parseError = body === undefined ? undefined : jsonError(body);
  return (
    <>
      {fields.map((slot) => (
        <RequestFieldRow
          key={slot.key}
          slot={slot}
          picker={pickerOf(operation, fields, slot, values)}
          value={values[slot.key]}
          onValue={(value) => setValue(slot.key, value)}
        />
      ))}
      {body !== undefined && (
        <div class="field">
          <label for={id}>Body</label>
          <textarea
            id={id}
            class="code-input"
            value={body}
            rows={Math.min(Math.max(body.split('\n').length + 1, 4), 24)}
            spellcheck={false}
            autocomplete="off"
            aria-describedby={parseError === undefined ? undefined : `${id}-error`}
            onInput={({ currentTarget }) => onDraft({ ...draft, body: currentTarget.value })}
          />
          {parseError !== undefined && (
            <p class="hint" id={`${id}-error`}>
              {parseError}
            </p>
          )}
        </div>
      )}
    </>
  );
}

/** Only a hint: the service validates the body. */
function jsonError(body: string): string | undefined {
  try {
    JSON.parse(body);
    return undefined;
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}

interface RequestFieldRowProps {
  readonly slot: RequestField;
  readonly picker: ReturnType<typeof pickerOf>;
  /** Undefined if it is not sent. */
  readonly value: string | undefined;
  readonly onValue: (value: string | undefined) => void;
}

/** An optional field is sent if its box is checked; typing checks it. */
function RequestFieldRow({ slot, picker, value, onValue }: RequestFieldRowProps) {
  const { name, place, isRequired, description, example, choices } = slot;
  const id = useId();
  const field = {
    id,
    value: value ?? example,
    autocomplete: 'off',
    'aria-describedby': description === undefined ? undefined : `${id}-hint`,
  };
  return (
    <div class={value === undefined ? 'field slot-off' : 'field'}>
      <div class="check">
        {!isRequired && (
          <input
            type="checkbox"
            checked={value !== undefined}
            aria-label={`Send ${name}`}
            onChange={({ currentTarget }) => onValue(currentTarget.checked ? example : undefined)}
          />
        )}
        <label for={id}>
          <code>{name}</code>
        </label>
        <span class="faint small">{place}</span>
      </div>
      {picker ? (
        <RecordPicker {...picker} id={id} value={value ?? ''} example={example} onValue={onValue} />
      ) : choices.length > 0 ? (
        <select {...field} onChange={({ currentTarget }) => onValue(currentTarget.value)}>
          {[...new Set([...choices, example])].map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input
          {...field}
          type="text"
          spellcheck={false}
          onInput={({ currentTarget }) => onValue(currentTarget.value)}
        />
      )}
      {description !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          <Prose text={description} />
        </p>
      )}
    </div>
  );
}
