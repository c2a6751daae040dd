import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test.each([
  ['SECURITY.md', 'Defences', 'security.tsv'],
  ['docs/guides/provider-sign-in.md', 'What an attacker can do', 'provider_sign_in.tsv'],
])('every row of %s names tests that exist', (page, heading, tests) => {
  const table = read(page).match(new RegExp(`^## ${heading}$[\\s\\S]*?^## `, 'm'))?.[0] ?? '';
  const attacks = [...table.matchAll(/^\| (.+?) \| .+ \|$/gm)].map(([, attack]) => attack).slice(1);
  const rows = read(`test/repository/${tests}`).trim().split('\n');
  const tested = rows.map((row) => row.split('\t'));
  expect(attacks.length).toBeGreaterThan(0);
  expect([...new Set(tested.map(([attack]) => attack))]).toEqual(attacks);
  for (const [, path = '', title = ''] of tested)
    expect([path, title, hasTest(path, title)]).toEqual([path, title, true]);
});

/** Whether a file has a test with this title, written as the source has it: `%s` and `${name}` stand for values. */
function hasTest(path: string, title: string): boolean {
  const text = existsSync(join(ROOT, path)) ? read(path) : '';
  return title !== '' && ["'", '"', '`'].some((quote) => text.includes(quote + title + quote));
}
