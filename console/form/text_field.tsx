import { useId } from 'preact/hooks';

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  /** Empty where there is nothing to say about it. */
  readonly complaint: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly inputMode?: 'text' | 'url' | 'numeric';
  readonly onText: (text: string) => void;
}

/** A line of text, with what is to be said about it. */
export function TextField({
  label,
  value,
  complaint,
  hint,
  isRequired = false,
  inputMode = 'text',
  onText,
}: TextFieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, complaint && `${id}-complaint`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired ? null : <span class="wanted"> (optional)</span>}
      </label>
      <input
        id={id}
        value={value}
        inputMode={inputMode}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-required={isRequired}
        aria-invalid={complaint !== ''}
        aria-describedby={described === '' ? undefined : described}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {complaint !== '' && (
        <p class="complaint" id={`${id}-complaint`}>
          {complaint}
        </p>
      )}
    </div>
  );
}
