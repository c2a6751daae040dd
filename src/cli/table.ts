import type { Output } from './output.ts';

/** What a terminal would obey, or would not show: controls, directions, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** A text in which nothing speaks to the terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** JSON in one line that means the same and that a terminal may see. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A value as a table has it. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - Bun.stringWidth(text)));
}

function line(cells: readonly string[], widths: readonly number[]): string {
  return `${cells
    .map((text, index) => padded(text, widths[index] ?? 0))
    .join('  ')
    .trimEnd()}\n`;
}

/** A record by itself: a name and a value in each line. */
export function namesAndValues(pairs: readonly (readonly [string, unknown])[]): string {
  const widths = [Math.max(...pairs.map(([name]) => name.length))];
  return pairs.map(([name, value]) => line([name, cell(value)], widths)).join('');
}

/** Rows under their names, as they come. */
export interface Table {
  add(row: Readonly<Record<string, unknown>>): Promise<void>;
  /** Writes what is left; resolves with the number of rows. */
  end(): Promise<number>;
}

/** The first rows decide the widths, so that however many come, only these are waited for. */
const ROWS_MEASURED = 100;

export function openTable(columns: readonly string[], output: Pick<Output, 'write'>): Table {
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
    await output.write(text);
  };
  return {
    async add(row) {
      rows += 1;
      waiting.push(columns.map((column) => cell(row[column])));
      if (waiting.length > ROWS_MEASURED) await flush();
    },
    async end() {
      if (rows > 0) await flush();
      return rows;
    },
  };
}
