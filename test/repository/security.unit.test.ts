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
  for (const [, path = ''] of tested) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
});
