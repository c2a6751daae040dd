import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { referencePages } from '../../scripts/write_reference.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGES = Object.entries(await referencePages());

test.each(PAGES)('%s is what npm run reference writes', (path, text) => {
  const file = join(ROOT, path);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(text);
});

test('docs/reference has no other page', () => {
  const pages = readdirSync(join(ROOT, 'docs/reference')).map((name) => `docs/reference/${name}`);
  expect(pages.sort()).toEqual(PAGES.map(([path]) => path).sort());
});
