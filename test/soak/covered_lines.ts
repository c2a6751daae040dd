import { readFileSync } from 'node:fs';

/** Execution counts by file and line, where they were measured. Paths are relative to the repository. */
export type CoveredLines = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** Reads a report of `bun test --coverage-reporter=lcov`. */
export function readCoveredLines(path: string): CoveredLines {
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

/** Whether any of these lines ran. Lines without any count may have run. */
export function isCovered(
  covered: CoveredLines,
  path: string,
  [first, last]: readonly [first: number, last: number],
): boolean {
  const lines = covered.get(path);
  if (!lines) return false;
  const counts = Array.from({ length: last - first + 1 }, (_, at) => lines.get(first + at));
  return (
    counts.some((count) => count !== undefined && count > 0) || counts.every((count) => count === undefined)
  );
}
