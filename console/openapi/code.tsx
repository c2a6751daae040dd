import type { ComponentChild } from 'preact';
import { CopyButton } from '../parts/copy.tsx';
import { UntrustedText } from '../parts/untrusted_text.tsx';

/** A text with `code` between backticks. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

interface CodeBlockProps {
  readonly text: string;
  /** Names the text for the copy button. */
  readonly what: string;
  readonly isJson?: boolean;
}

/** Maximum length for syntax coloring. */
const COLOURED_MAX = 150_000;

/** A code block with a copy button. Strings in JSON are untrusted text. */
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

/** Pretty-prints JSON; other text is unchanged. */
export function formatted(text: string): { readonly text: string; readonly isJson: boolean } {
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), isJson: true };
  } catch {
    return { text, isJson: false };
  }
}
