const BLANKS = /[ \t\n\r]*/y;
const CHARACTERS = /[ !#-[\]-\uffff]+|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?)[ \t\n\r]*/y;

/**
 * The line and column, counted from 1 in characters, of the first token at which a text is not JSON (RFC 8259); undefined for JSON. The
 * messages of JSON.parse quote the text, and so its secrets.
 */
export function jsonErrorPlace(text: string): string | undefined {
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  };
  const take = (character: string): boolean => {
    if (text[at] !== character) return false;
    at += 1;
    return skip(BLANKS);
  };
  const list = (item: () => boolean, end: string): boolean => {
    if (take(end)) return true;
    do {
      if (!item()) return false;
    } while (take(','));
    return take(end);
  };
  const string = (): boolean => {
    if (text[at] !== '"') return false;
    at += 1;
    while (skip(CHARACTERS));
    return take('"');
  };
  const value = (): boolean => {
    if (take('{')) return list(() => string() && take(':') && value(), '}');
    if (take('[')) return list(value, ']');
    return text[at] === '"' ? string() : skip(SCALAR);
  };
  skip(BLANKS);
  if (value() && at === text.length) return undefined;
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${[...(lines.at(-1) ?? '')].length + 1}`;
}
