import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Announcer } from './announcer.tsx';
import { Icon } from './icon.tsx';

const TEXT_FIELDS = 'form :is(input:not([type="checkbox"], [type="radio"]), textarea)';

interface DialogProps {
  readonly title: string;
  /** Without it, only a button of the content closes the dialog: neither Escape nor leaving the page without a warning. */
  readonly onClose?: () => void;
  readonly children: ComponentChildren;
}

/**
 * A modal dialog: the browser keeps the focus inside and restores it afterwards. Escape and the button at its head ask before
 * they discard what was typed into a form.
 */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Unmounting closes the element too, which is no request of the user.
  const isMounted = useRef(true);
  const isTyped = useRef(false);
  // Before the effects of a form in it, which move the focus.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    focusFirstField(dialog);
    return () => {
      isMounted.current = false;
      dialog?.close();
    };
  }, []);
  useEffect(() => {
    if (onClose) return;
    // Browsers ask before they leave a page whose `beforeunload` is cancelled.
    const warn = (event: Event) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [onClose === undefined]);
  const close = () => {
    if (!isMounted.current) return;
    isTyped.current &&= !confirm('Discard what you have typed?');
    if (onClose && !isTyped.current) onClose();
    else if (!element.current?.open) element.current?.showModal();
  };
  // A browser ignores that `cancel` is cancelled at a second Escape in a row, but not that the key is.
  const closeOnEscape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  const noteText = ({ target }: Event) => {
    isTyped.current ||= target instanceof Element && target.matches(TEXT_FIELDS);
  };
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={heading}
      onInput={noteText}
      onKeyDown={closeOnEscape}
      onClose={close}
    >
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        {onClose && (
          <button type="button" class="icon-button" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
      <Announcer isInDialog />
    </dialog>
  );
}

/** Where typing begins: not at the button that closes a dialog. */
export function focusFirstField(within: HTMLElement | null): void {
  within?.querySelector<HTMLElement>(':is(form, search) :is(input, select, textarea)')?.focus();
}

/** Characters of the ID in a confirmation text. */
const TYPED = 4;

/** The text to type as confirmation: the verb and the end of the ID. */
export function confirmationWord(verb: string, id: string): string {
  return `${verb} ${id.slice(-TYPED)}`;
}

export interface ConfirmationProps {
  readonly title: string;
  /** The text to type, for actions that cannot be undone. */
  readonly confirmation?: string | undefined;
  readonly verb: string;
  /** Styles the action as destructive. */
  readonly isDanger?: boolean;
  readonly isBusy: boolean;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Asks for confirmation. Typing a text prevents accidents. */
export function Confirmation(props: ConfirmationProps) {
  const { title, confirmation, verb, isDanger = true, isBusy, onConfirm, onClose, children } = props;
  const [typed, setTyped] = useState('');
  const field = useId();
  const isConfirmed = confirmation === undefined || typed === confirmation;
  const submit = (event: Event) => {
    event.preventDefault();
    if (isConfirmed && !isBusy) onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {children}
        {confirmation !== undefined && (
          <div class="field">
            <label for={field}>
              Type <strong>{confirmation}</strong> to confirm
            </label>
            <input
              id={field}
              value={typed}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => {
                // It is nothing to keep: the dialog closes without a question.
                event.stopPropagation();
                setTyped(event.currentTarget.value);
              }}
            />
          </div>
        )}
        <FormActions
          submit={verb}
          isDisabled={!isConfirmed || isBusy}
          isDanger={isDanger}
          onCancel={onClose}
        />
      </form>
    </Dialog>
  );
}

interface FormActionsProps {
  readonly submit: string;
  readonly isDisabled: boolean;
  readonly isDanger?: boolean;
  readonly onCancel: () => void;
}

/** The buttons of a form: submit and cancel. */
export function FormActions({ submit, isDisabled, isDanger = false, onCancel }: FormActionsProps) {
  return (
    <div class="actions">
      <button
        type="submit"
        class={isDanger ? 'button button-danger' : 'button button-main'}
        disabled={isDisabled}
      >
        {submit}
      </button>
      <button type="button" class="button" onClick={onCancel}>
        Cancel
      </button>
    </div>
  );
}
