import { codePointOf, piecesOf } from './confusables.ts';

/**
 * Untrusted text: isolated in its direction, with invisible and confusable characters marked by their code
 * points.
 */
export function UntrustedText({ text }: { readonly text: string }) {
  return (
    <bdi class="untrusted">
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
