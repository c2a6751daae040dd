import { LIMITS } from '../../model/limits.ts';

/** One line of a file, numbered from 1; empty lines count but are not returned. */
export interface SourceLine {
  readonly number: number;
  /** Without the line end; undefined for a line over `importLineBytesMax`, which is never held in memory. */
  readonly bytes: Uint8Array | undefined;
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Bytes that do not count: a byte order mark before the first line, a CR after any line. */
const AROUND_BYTES = BYTE_ORDER_MARK.length + 1;

/**
 * Splits a stream of bytes into lines, and yields those of each chunk together. A line is a view of its chunk; only a line
 * that crosses chunks is copied. The text after the last newline is a line too.
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly SourceLine[]> {
  /** The start of a line whose end has not arrived; none of a line that is too long already. */
  let pieces: Uint8Array[] = [];
  /** The bytes of the line so far, including dropped ones. */
  let size = 0;
  let number = 0;

  function append(piece: Uint8Array): void {
    size += piece.length;
    if (size > LIMITS.importLineBytesMax + AROUND_BYTES) pieces = [];
    else pieces.push(piece);
  }

  function finish(piece: Uint8Array, lines: SourceLine[]): void {
    append(piece);
    number += 1;
    const bytes = pieces.length > 0 ? trimmed(joined(pieces, size), number) : undefined;
    pieces = [];
    size = 0;
    if (bytes?.length === 0) return;
    const isFit = bytes !== undefined && bytes.length <= LIMITS.importLineBytesMax;
    lines.push({ number, bytes: isFit ? bytes : undefined });
  }

  for await (const chunk of chunks) {
    const lines: SourceLine[] = [];
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      finish(chunk.subarray(from, at), lines);
      from = at + 1;
    }
    append(chunk.subarray(from));
    yield lines;
  }
  const last: SourceLine[] = [];
  finish(new Uint8Array(0), last);
  yield last;
}

/** Also runs in browsers, which have no Buffer. */
function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const longest = pieces.find(({ length }) => length === size);
  if (longest) return longest;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The line itself: without a byte order mark at the start of the file, without the CR of a CRLF. */
function trimmed(bytes: Uint8Array, number: number): Uint8Array {
  const isMarked = number === 1 && BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
  const start = isMarked ? BYTE_ORDER_MARK.length : 0;
  const end = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
  return bytes.subarray(start, Math.max(start, end));
}
