import { useState } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { Icon } from './icon.tsx';

const SHOWN_MS = 1_500;

/** Copies a text; `what` names it. */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    const isCopied = await toClipboard(text);
    announce(isCopied ? `Copied ${what}.` : `The browser did not allow copying ${what}.`);
    setDone(isCopied);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  return (
    <button
      type="button"
      class="icon-button"
      title={`Copy ${what}`}
      aria-label={`Copy ${what}`}
      onClick={copy}
    >
      <Icon name={isDone ? 'done' : 'copy'} />
    </button>
  );
}

/** Over plain http browsers have no navigator.clipboard. */
async function toClipboard(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}

/** An ID with a copy button. */
export function Identifier({ id, what = 'the ID' }: { readonly id: string; readonly what?: string }) {
  return (
    <span class="identifier">
      <code>{id}</code>
      <CopyButton text={id} what={what} />
    </span>
  );
}
