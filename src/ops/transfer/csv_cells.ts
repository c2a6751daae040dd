import { LIMITS } from '../../model/limits.ts';

/** Spreadsheets take a cell that begins with one of these for a formula. */
const FORMULA = /^[=+\-@\t\r']/;
const GUARD = /^'(?=[=+\-@\t\r'])/;
/** A cell, or a part of it up to a doubled quote, and its end. A CR at the end of a chunk may be the first half of a line end. */
const CELL = /(?:"([^"]*)"|([^",\r\n]*))(,|\r?\n|\r(?=[^\n])|(?="))/y;

export type Cells = readonly string[];

/** Writes a row (RFC 4180). A cell that could be a formula begins with a quote, which `csvRows` takes away. */
export function csvRow(values: readonly unknown[]): string {
  const cells = values.map((value) => {
    const guarded = String(value ?? '').replace(FORMULA, "'$&");
    return `"${guarded.replaceAll('"', '""')}"`;
  });
  return `${cells.join()}\r\n`;
}

/**
 * Splits CSV into rows, also empty ones, and yields those of each chunk together; undefined, and no further row, for one with a misplaced
 * or open quote, or over `importLineBytesMax`.
 */
export async function* csvRows(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly (Cells | undefined)[]> {
  let rest = '';
  for await (const text of textsOf(chunks)) {
    const found = splitRows(rest + text);
    rest = found.rest;
    yield found.rows;
    if (rest.length > LIMITS.importLineBytesMax) break;
  }
  if (rest !== '') yield [undefined];
}

/** The complete rows at the beginning of a text, and the rest of it. */
function splitRows(text: string) {
  const rows: Cells[] = [];
  let row: string[] = [];
  let cell = '';
  let start = 0;
  CELL.lastIndex = 0;
  for (let found = CELL.exec(text); found; found = CELL.exec(text)) {
    const [, quoted, plain, end] = found;
    if (end === '' && quoted === undefined) break;
    cell += end === '' ? `${quoted}"` : (quoted ?? plain);
    if (end === '') continue;
    row.push(cell.replace(GUARD, ''));
    cell = '';
    if (end === ',') continue;
    rows.push(row);
    row = [];
    start = CELL.lastIndex;
  }
  return { rows, rest: text.slice(start) };
}

/** In short parts, because parsing more at once would delay lookups. With a line end after the last line. */
async function* textsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const size = LIMITS.importLineBytesMax;
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += size)
      yield decoder.decode(chunk.subarray(at, at + size), { stream: true });
  yield `${decoder.decode()}\n`;
}
