import { readFileSync, writeFileSync } from 'node:fs';

/** A table: rows by name, and in each row the cells by column. */
export type Table = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Reads a tab-separated table: the first line has the columns, the first cells of each line are its name. */
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

/** Writes a table, ordered by name. */
export function writeTable(path: string, names: readonly string[], table: Table): void {
  const [first] = table.values();
  const rows = [...table].sort(([left], [right]) => (left < right ? -1 : 1));
  const lines = rows.map(([name, cells]) => [name, ...cells.values()].join('\t'));
  const head = [...names, ...(first?.keys() ?? [])].join('\t');
  writeFileSync(path, `${[head, ...lines].join('\n')}\n`);
}

/** A sentence for each missing row, unexpected row and different cell. */
export function differences(expected: Table, actual: Table): readonly string[] {
  const missing = [...actual.keys()].filter((name) => !expected.has(name));
  const unexpected = [...expected.keys()].filter((name) => !actual.has(name));
  const different = [...actual].flatMap(([name, cells]) =>
    [...cells].flatMap(([column, cell]) => {
      const wanted = expected.get(name)?.get(column);
      return expected.has(name) && wanted !== cell ? [`${name} ${column}: ${cell}, not ${wanted}`] : [];
    }),
  );
  return [
    ...missing.map((name) => `${name}: has no row`),
    ...unexpected.map((name) => `${name}: is not in the matrix`),
    ...different,
  ];
}
