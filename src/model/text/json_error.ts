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
  const string = (): boolean => {
    if (text[at] !== '"') return false;
    at += 1;
    while (skip(CHARACTERS));
    return take('"');
  };
  const name = (): boolean => string() && take(':');
  /** The ends of the objects and lists that are open: a text may have more levels than the stack has room for. */
  const ends: string[] = [];
  const beginNext = (): boolean => ends.at(-1) !== '}' || name();
  /** After a value: the ends that follow, and what is before the next value. */
  const finish = (): boolean => {
    while (ends.length > 0 && !take(',')) if (!take(ends.pop() ?? '')) return false;
    return ends.length === 0 || beginNext();
  };
  /** A value, or the start of an object or list that is not empty. */
  const begin = (): boolean => {
    const end = take('{') ? '}' : take('[') ? ']' : undefined;
    if (end === undefined) return (text[at] === '"' ? string() : skip(SCALAR)) && finish();
    if (take(end)) return finish();
    ends.push(end);
    return beginNext();
  };
  const value = (): boolean => {
    do if (!begin()) return false;
    while (ends.length > 0);
    return true;
  };
  skip(BLANKS);
  if (value() && at === text.length) return undefined;
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${[...(lines.at(-1) ?? '')].length + 1}`;
}
