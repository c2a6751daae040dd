import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LIMITS } from '../../src/model/limits.ts';
import { tablesOn } from '../../src/sql/tables/tables.ts';

/** The arithmetic of docs/scale.md, the connections of a process, and what Citus has on which node. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/scale.md'), 'utf8');

/** The cells of the rows under a table heading, without backticks. */
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

/** As in the table: three significant digits. */
function formatted(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 1 });
}

test('no test is left out on Citus', () => {
  const leavesOut = /\b(skip|skipIf|if|todoIf) ?\(!?isCitusEngine\)[( ]*(return|['"`])/;
  const suites = [...new Bun.Glob('test/**/*.{test,contract}.ts').scanSync(ROOT)];
  expect(suites.filter((path) => leavesOut.test(readFileSync(join(ROOT, path), 'utf8')))).toEqual([]);
});

test('every node of a cluster has the small tables of the installation, and one node those written often', () => {
  expect(tablesOn('every node').map(({ name }) => name)).toEqual([
    ...['instance', 'keyring', 'signing_key', 'client', 'client_realm', 'migration', 'instance_secret'],
    ...['revoked_token', 'webhook'],
  ]);
  expect(tablesOn('one node').map(({ name }) => name)).toEqual([
    ...['client_use', 'console_link', 'console_session', 'webhook_progress', 'delivery', 'dead_letter'],
    'lease',
  ]);
});

describe('docs/scale.md', () => {
  test.each(results.map((row) => row as [string, string, string]))(
    'the result %s is computed right',
    (name, formula, expected) => {
      const compute = new Function(...values.keys(), `return ${formula}`);
      const value = compute(...values.values());
      values.set(name, value);
      expect(expected).toBe(formatted(value));
    },
  );

  test('every input of docs/scale.md is used', () => {
    expect(inputs.size).toBeGreaterThan(0);
    const used = results.map(([, formula]) => formula).join(' ');
    expect([...inputs.keys()].filter((name) => !new RegExp(`\\b${name}\\b`).test(used))).toEqual([]);
  });
});

test('docs/guides/postgresql.md has the most connections of a process, the sum of the limits', () => {
  const connections = Object.entries(LIMITS)
    .filter(([name]) => /ConnectionsMax$/.test(name) || name === 'readersMax')
    .reduce((sum, [, bound]) => sum + bound, 0);
  const guide = readFileSync(join(ROOT, 'docs/guides/postgresql.md'), 'utf8');
  expect(guide).toContain(`A process uses up to ${connections} connections`);
});
