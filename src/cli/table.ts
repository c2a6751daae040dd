import { escapeUnprintable, printLine, UNPRINTABLE } from '../ops/process/standard_streams.ts';
import type { WriteText } from './output.ts';

/** The text with unprintable characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Equivalent JSON in one line, with unprintable characters escaped. */
export function printableJson(value: unknown): string {
  return escapeUnprintable(JSON.stringify(value));
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

function line(cells: readonly string[], widths: readonly number[]): string {
  return `${cells
    .map((text, index) => text + ' '.repeat(Math.max(0, (widths[index] ?? 0) - Bun.stringWidth(text))))
    .join('  ')
    .trimEnd()}\n`;
}

/** One record, a name and a value per line. */
export function namesAndValues(pairs: readonly (readonly [string, unknown])[]): string {
  const widths = [Math.max(...pairs.map(([name]) => name.length))];
  return pairs.map(([name, value]) => line([name, cell(value)], widths)).join('');
}

/** Prints the result of a command, or several: as JSON, or as names and values with an empty line after each. */
export function printResult(result: object | readonly object[], asJson?: true): void {
  if (asJson) printLine(JSON.stringify(result, null, 2));
  else for (const each of [result].flat()) printLine(namesAndValues(Object.entries(each)));
}

/** The first rows determine the column widths, so that output starts before the last row arrives. */
const ROWS_MEASURED = 100;

/** Writes rows under a heading as they arrive. */
export function openTable(columns: readonly string[], write: WriteText) {
  let waiting: (readonly string[])[] = [columns];
  let widths: readonly number[] | undefined;
  let rows = 0;
  const flush = async (): Promise<void> => {
    widths ??= columns.map((_, index) =>
      Math.max(...waiting.map((row) => Bun.stringWidth(row[index] ?? ''))),
    );
    const fixed = widths;
    const text = waiting.map((row) => line(row, fixed)).join('');
    waiting = [];
    await write(text);
  };
  return {
    async add(row: Readonly<Record<string, unknown>>): Promise<void> {
      rows += 1;
      waiting.push(columns.map((column) => cell(row[column])));
      if (waiting.length > ROWS_MEASURED) await flush();
    },
    /** Writes the remaining rows; nothing without any. */
    async end(): Promise<void> {
      if (rows > 0) await flush();
    },
  };
}
