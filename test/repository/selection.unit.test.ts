import { expect, test } from 'bun:test';
import { nearest, partOf } from '../../scripts/test/selection.ts';
import { findSuites } from '../../scripts/test/suites.ts';

/** Which suites a run of `.ci/run` takes in addition to those of `npm test` (CONTRIBUTING.md, "Tests"). */

const all = findSuites();

test('each suite is in one part of the nightly run, and the parts take about the same seconds', () => {
  const parts = [0, 1, 2, 3].map((index) => partOf(all, index, 4));
  expect(new Set(parts.flat()).size).toBe(all.length);
  expect(parts.flat().length).toBe(all.length);
  const sizes = parts.map((part) => part.length);
  expect(Math.max(...sizes)).toBeLessThan(2 * Math.min(...sizes));
});

test('the suites next to a change are those that changed, the latest first, then those that import it', () => {
  const suites = all.filter(({ engine }) => engine === 'sqlite');
  const changed = [
    'test/records/store.serial.test.ts',
    'test/access/clients.test.ts',
    'src/http/server/router.ts',
  ];
  const near = nearest(suites, changed).map(({ path }) => path);
  expect(near.slice(0, 2)).toEqual(changed.slice(0, 2));
  expect(near).toContain('test/http/lookup.test.ts');
  expect(near).not.toContain('test/repository/weight.unit.test.ts');
});
