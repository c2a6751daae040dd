import { readFileSync, writeFileSync } from 'node:fs';

/** A table of cells: its rows by their names, and of each row the cells by their columns. */
export type Table = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Reads a table: tab-separated, its first line the columns, the first cells of each line its name. */
export function readTable(path: string, nameCells: number): Table {
  const [head = '', ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
  const columns = head.split('\t').slice(nameCells);
  return new Map(
    lines.map((line) => {
      const cells = line.split('\t');
      const name = cells.slice(0, nameCells).join('\t');
      return [name, new Map(columns.map((column, at) => [column, cells[at + nameCells] ?? '']))];
    }),
  );
}

/** Writes a table in the order of its names. */
export function writeTable(path: string, names: readonly string[], table: Table): void {
  const [first] = table.values();
  const rows = [...table].sort(([left], [right]) => (left < right ? -1 : 1));
  const lines = rows.map(([name, cells]) => [name, ...cells.values()].join('\t'));
  const head = [...names, ...(first?.keys() ?? [])].join('\t');
  writeFileSync(path, `${[head, ...lines].join('\n')}\n`);
}

/** What differs, a sentence for each row that is missing, strange or other than expected. */
export function differences(expected: Table, actual: Table): readonly string[] {
  const missing = [...actual.keys()].filter((name) => !expected.has(name));
  const strange = [...expected.keys()].filter((name) => !actual.has(name));
  const other = [...actual].flatMap(([name, cells]) =>
    [...cells].flatMap(([column, cell]) => {
      const wanted = expected.get(name)?.get(column);
      return expected.has(name) && wanted !== cell ? [`${name} ${column}: ${cell}, not ${wanted}`] : [];
    }),
  );
  return [
    ...missing.map((name) => `${name}: has no row`),
    ...strange.map((name) => `${name}: is a row of nothing`),
    ...other,
  ];
}
