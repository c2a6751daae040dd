import { codePointOf, piecesOf } from './confusables.ts';

/**
 * A text that a stranger has written: isolated from the direction of what stands around it, with a mark for what cannot
 * be seen, and the code point of what looks like another letter.
 */
export function UntrustedText({ text }: { readonly text: string }) {
  return (
    <bdi class="said">
      {piecesOf(text).map(({ kind, text: piece }, index) => {
        if (kind === 'plain') return piece;
        const code = codePointOf(piece);
        if (kind === 'invisible') {
          return (
            <span key={index} class="mark" title={`invisible character ${code}`}>
              {code}
            </span>
          );
        }
        return (
          <span key={index} class="alike" title={`${code} looks like another character`}>
            {piece}
            <span class="mark">{code}</span>
          </span>
        );
      })}
    </bdi>
  );
}
