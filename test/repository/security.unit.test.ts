import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('every row of SECURITY.md names tests that exist', () => {
  const table = read('SECURITY.md').match(/^## Defences$[\s\S]*?^## /m)?.[0] ?? '';
  const attacks = [...table.matchAll(/^\| (.+?) \| .+ \|$/gm)].map(([, attack]) => attack).slice(1);
  const rows = read('test/repository/security.tsv').trim().split('\n');
  const tested = rows.map((row) => row.split('\t'));
  expect([...new Set(tested.map(([attack]) => attack))]).toEqual(attacks);
  for (const [, path = '', title = ''] of tested)
    expect([path, title, hasTest(path, title)]).toEqual([path, title, true]);
});

/** Whether a file has a test with this title, written as the source has it: `%s` and `${name}` stand for values. */
function hasTest(path: string, title: string): boolean {
  const text = existsSync(join(ROOT, path)) ? read(path) : '';
  return title !== '' && ["'", '"', '`'].some((quote) => text.includes(quote + title + quote));
}
