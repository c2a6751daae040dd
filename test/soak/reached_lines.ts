import { readFileSync } from 'node:fs';

/** How often each line of each file was reached, as far as that was counted. Paths are those of the tree. */
export type ReachedLines = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** Reads what `bun test --coverage-reporter=lcov` wrote. */
export function readReachedLines(path: string): ReachedLines {
  const files = new Map<string, Map<number, number>>();
  let lines = new Map<number, number>();
  for (const row of readFileSync(path, 'utf8').split('\n')) {
    const [, file] = /^SF:(.+)$/.exec(row) ?? [];
    if (file !== undefined) {
      lines = new Map();
      files.set(file, lines);
    }
    const [, line, count] = /^DA:(\d+),(\d+)/.exec(row) ?? [];
    if (line !== undefined) lines.set(Number(line), Number(count));
  }
  return files;
}

/** Whether any of these lines was reached. Lines of which none was counted may have been. */
export function isReached(
  reached: ReachedLines,
  path: string,
  [first, last]: readonly [first: number, last: number],
): boolean {
  const lines = reached.get(path);
  if (!lines) return false;
  const counts = Array.from({ length: last - first + 1 }, (_, at) => lines.get(first + at));
  return (
    counts.some((count) => count !== undefined && count > 0) || counts.every((count) => count === undefined)
  );
}
