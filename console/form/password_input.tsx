import { useRef, useState } from 'preact/hooks';
import { CopyButton } from '../parts/copy.tsx';
import type { SharedAttributes } from './fields.tsx';

interface PasswordInputProps {
  readonly attributes: SharedAttributes;
  readonly value: string;
  /** Whether it is a password of a user, not the secret of another system. */
  readonly canGenerate: boolean;
  readonly onValue: (value: string) => void;
}

/** A hidden text that can be shown. A new password can be generated: it is then shown, and copied before the form is sent. */
export function PasswordInput({ attributes, value, canGenerate, onValue }: PasswordInputProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isShown, setShown] = useState(false);
  const shown: SharedAttributes = { ...attributes, type: isShown ? 'text' : 'password' };
  const generate = () => {
    if (!input.current) return;
    setShown(true);
    // As if it were typed: the form and its dialog notice it.
    input.current.value = randomPassword();
    input.current.dispatchEvent(new Event('input', { bubbles: true }));
  };
  return (
    <>
      <input
        {...shown}
        ref={input}
        value={value}
        autocomplete="new-password"
        autocapitalize="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      <div class="actions">
        {canGenerate && (
          <button type="button" class="text-button" onClick={generate}>
            Generate
          </button>
        )}
        {value !== '' && (
          <button type="button" class="text-button" onClick={() => setShown(!isShown)}>
            {isShown ? 'Hide' : 'Show'}
          </button>
        )}
        {value !== '' && isShown && <CopyButton text={value} what="the password" />}
      </div>
    </>
  );
}

/** Thirty-two characters that are not mistaken for one another when they are read aloud or copied by hand: five bits each. */
const CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const GROUPS = 5;
const GROUP_CHARACTERS = 4;

function randomPassword(): string {
  const groups = Array.from({ length: GROUPS }, () =>
    [...crypto.getRandomValues(new Uint8Array(GROUP_CHARACTERS))]
      .map((byte) => CHARACTERS.charAt(byte % CHARACTERS.length))
      .join(''),
  );
  return groups.join('-');
}
