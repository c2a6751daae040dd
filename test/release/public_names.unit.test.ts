import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publicNames } from '../../scripts/public_names.ts';
import { VERSION } from '../../src/platform/version.ts';
import { RELEASES } from '../support/release_tree.ts';

/** UPGRADING.md names everything that a release has and this one lacks. */

const ROOT = join(import.meta.dir, '../..');
const upgrading = readFileSync(join(ROOT, 'UPGRADING.md'), 'utf8');
const current = await publicNames();

describe.each(RELEASES.filter((release) => release !== VERSION))('names of release %s', (release) => {
  const file = join(ROOT, 'test/fixtures/releases', release, 'names.json');
  const names = JSON.parse(readFileSync(file, 'utf8')) as typeof current;

  test.each(Object.entries(names))(
    `every name of the ${release} %s exists, or UPGRADING.md lists it as changed`,
    (kind, before) => {
      const gone = before.filter((name) => !current[kind]?.includes(name));
      expect(gone.filter((name) => !upgrading.includes(`\`${name}\``))).toEqual([]);
    },
  );

  test('the fixture has names of every kind that this release has', () => {
    expect(Object.keys(names)).toEqual(Object.keys(current));
  });
});
