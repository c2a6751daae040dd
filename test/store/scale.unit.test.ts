import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LIMITS } from '../../src/domain/limits.ts';

/** The arithmetic of docs/scale.md, done again. */

const page = readFileSync(fileURLToPath(new URL('../../docs/scale.md', import.meta.url)), 'utf8');

/** The cells of the rows under a row of headings, code marks taken off. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const [, after = ''] = page.split(`\n${heading}\n`);
  const [table = ''] = after.split('\n\n');
  return table
    .split('\n')
    .slice(1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
}

const inputs = new Map(
  rowsUnder('| Input | Value | From |').map(([name = '', value = '']) => [
    name,
    Number(value.replaceAll(',', '')),
  ]),
);
const results = rowsUnder('| Result | Formula | Comes to | What it is |');

/** Inputs, and the results so far. */
const values = new Map(inputs);

/** As the table tells it: three digits that count. */
function told(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 1 });
}

describe('docs/scale.md', () => {
  test('every input is a number', () => {
    expect([...inputs].filter(([, value]) => !Number.isFinite(value))).toEqual([]);
    expect(inputs.size).toBeGreaterThan(0);
  });

  test.each(results.map((row) => row as [string, string, string]))('%s', (name, formula, comesTo) => {
    const compute = new Function(...values.keys(), `return ${formula}`);
    const value = compute(...values.values());
    values.set(name, value);
    expect(comesTo).toBe(told(value));
  });

  test('every input is used, and the connections of a process are those of the limits', () => {
    const used = results.map(([, formula]) => formula).join(' ');
    expect([...inputs.keys()].filter((name) => !new RegExp(`\\b${name}\\b`).test(used))).toEqual([]);
    const connections = Object.entries(LIMITS)
      .filter(([name]) => /ConnectionsMax$/.test(name) || name === 'readersMax')
      .reduce((sum, [, bound]) => sum + bound, 0);
    expect(inputs.get('process_connections')).toBe(connections);
  });
});
