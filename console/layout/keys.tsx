import { useEffect } from 'preact/hooks';
import { observable, useObservable } from '../observable.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Fact } from '../parts/facts.tsx';

/** A key, or a sequence of two, and its action. */
export interface Shortcut {
  /** `KeyboardEvent.key`; `g f` is a sequence. */
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
}

const shortcuts = observable<readonly Shortcut[]>([]);
const NAME = 'authrealm.keys';
/** Users of speech input can turn single keys off (WCAG 2.1.4). */
const areEnabled = observable(localStorage.getItem(NAME) !== 'off');
/** Time between two keys of a sequence. */
const SECOND_KEY_MS = 1_500;

/** Registers shortcuts while the component is mounted. */
export function useShortcuts(added: readonly Shortcut[]): void {
  useEffect(() => {
    shortcuts.set([...shortcuts.get(), ...added]);
    return () => shortcuts.set(shortcuts.get().filter((each) => !added.includes(each)));
  }, [added]);
}

/** Handles keys, except in inputs and while a dialog is open. */
export function useKeys(): void {
  useEffect(() => {
    let before = '';
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onKeyDown = (event: KeyboardEvent) => {
      if (!areEnabled.get() || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      const sequence = [before, event.key].filter(Boolean).join(' ');
      before = event.key;
      clearTimeout(timer);
      timer = setTimeout(() => {
        before = '';
      }, SECOND_KEY_MS);
      const found = shortcuts.get().find(({ keys }) => keys === sequence || keys === event.key);
      if (!found) return;
      event.preventDefault();
      before = '';
      found.run();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
}

function isTyping({ target }: KeyboardEvent): boolean {
  const isField = target instanceof Element && target.matches('input, textarea, select, [contenteditable]');
  return isField || document.querySelector('dialog[open]') !== null;
}

/** Those that browsers handle. */
const BROWSER_KEYS = [
  { keys: 'Tab', label: 'Next control' },
  { keys: 'Esc', label: 'Close dialog' },
];

/** The list of shortcuts. */
export function KeysDialog({ onClose }: { readonly onClose: () => void }) {
  const all = useObservable(shortcuts);
  const isEnabled = useObservable(areEnabled);
  const setEnabled = (chosen: boolean) => {
    localStorage.setItem(NAME, chosen ? 'on' : 'off');
    areEnabled.set(chosen);
  };
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <div class="stack">
        <dl class="facts">
          {[...all, ...BROWSER_KEYS].map(({ keys, label }) => (
            <Fact key={keys} label={keys.split(' ').map((key) => <kbd key={key}>{key}</kbd>)}>
              {label}
            </Fact>
          ))}
        </dl>
        <label class="check">
          <input
            type="checkbox"
            checked={isEnabled}
            onChange={({ currentTarget }) => setEnabled(currentTarget.checked)}
          />
          Enable single-key shortcuts
        </label>
      </div>
    </Dialog>
  );
}
