import { LIMITS } from '../../model/limits.ts';

/** One line of a file, numbered from 1; empty lines count but are not returned. */
export interface SourceLine {
  readonly number: number;
  /** Without the line end; undefined for a line over `importLineBytesMax`, which is never held in memory. */
  readonly bytes: Uint8Array | undefined;
  /** Why there are no bytes; default: the line is too long. */
  readonly problem?: string;
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Bytes that do not count: a byte order mark before the first line, a CR after any line. */
const AROUND_BYTES = BYTE_ORDER_MARK.length + 1;

/** Splits a stream of bytes into lines, and yields those of each chunk together. The text after the last newline is a line too. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly SourceLine[]> {
  /** The start of a line whose end has not arrived; empty for one that is too long already. */
  let rest = new Uint8Array(0);
  let isTooLong = false;
  let number = 0;
  for await (const chunk of withLastNewline(chunks)) {
    const lines: SourceLine[] = [];
    const bytes = new Uint8Array(rest.length + chunk.length);
    bytes.set(rest);
    bytes.set(chunk, rest.length);
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE, rest.length); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
      number += 1;
      const line = trimmed(bytes.subarray(from, at), number);
      if (isTooLong || line.length > LIMITS.importLineBytesMax) lines.push({ number, bytes: undefined });
      else if (line.length > 0) lines.push({ number, bytes: line });
      isTooLong = false;
      from = at + 1;
    }
    rest = bytes.slice(from);
    if (rest.length > LIMITS.importLineBytesMax + AROUND_BYTES) isTooLong = true;
    if (isTooLong) rest = new Uint8Array(0);
    yield lines;
  }
}

async function* withLastNewline(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
  yield Uint8Array.of(NEWLINE);
}

/** The line itself: without a byte order mark at the start of the file, without the CR of a CRLF. */
function trimmed(bytes: Uint8Array, number: number): Uint8Array {
  const isMarked = number === 1 && BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
  const start = isMarked ? BYTE_ORDER_MARK.length : 0;
  const end = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
  return bytes.subarray(start, Math.max(start, end));
}
