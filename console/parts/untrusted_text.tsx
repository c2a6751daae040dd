import { piecesOf, scriptReadAsLatin } from './confusables.ts';

interface UntrustedTextProps {
  readonly text: string;
  /** For an e-mail address, a username or a subject: a word that could be read as Latin gets the name of its script. */
  readonly isIdentifier?: boolean;
}

/** Untrusted text: isolated in its direction, with what misleads marked by code points. */
export function UntrustedText({ text, isIdentifier = false }: UntrustedTextProps) {
  const script = isIdentifier ? scriptReadAsLatin(text) : undefined;
  return (
    <bdi class="untrusted">
      {piecesOf(text).map(({ text: piece, code }, index) =>
        code === undefined ? (
          piece
        ) : (
          <span
            key={index}
            class={piece && 'alike'}
            title={piece ? `${code} is of another script` : `invisible character ${code}`}
          >
            {piece}
            <span class="mark">{code}</span>
          </span>
        ),
      )}
      {script !== undefined && (
        <span class="mark" title={`a word of ${script} letters that can be read as Latin ones`}>
          {script}
        </span>
      )}
    </bdi>
  );
}
