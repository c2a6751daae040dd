import type { ComponentChild } from 'preact';
import { CopyButton } from '../parts/copy.tsx';
import { UntrustedText } from '../parts/untrusted_text.tsx';

/** A text of the document: what stands between backticks is code. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

interface CodeBlockProps {
  readonly text: string;
  /** What it is, for who copies it. */
  readonly what: string;
  readonly isJson?: boolean;
}

/** Characters up to which the strings of a text are told apart. */
const COLOURED_MAX = 150_000;

/** A text as it is, to read and to copy. Of JSON, what is within strings is somebody's: it is shown with care. */
export function CodeBlock({ text, what, isJson = false }: CodeBlockProps) {
  const isColoured = isJson && text.length <= COLOURED_MAX;
  return (
    <div class="code-block">
      <CopyButton text={text} what={what} />
      <pre>
        <code>{isColoured ? <Json text={text} /> : <bdi>{text}</bdi>}</code>
      </pre>
    </div>
  );
}

const STRING = /("(?:[^"\\]|\\.)*")(\s*:)?/g;

function Json({ text }: { readonly text: string }) {
  const parts: ComponentChild[] = [];
  let from = 0;
  for (const found of text.matchAll(STRING)) {
    const [whole, string = '', colon] = found;
    parts.push(text.slice(from, found.index));
    parts.push(
      <span key={found.index} class={colon === undefined ? 'code-string' : 'code-name'}>
        "<UntrustedText text={string.slice(1, -1)} />"
      </span>,
      colon,
    );
    from = found.index + whole.length;
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  );
}

/** JSON with its lines; a text that is none stays as it is. */
export function formatted(text: string): { readonly text: string; readonly isJson: boolean } {
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), isJson: true };
  } catch {
    return { text, isJson: false };
  }
}
