import { expect, test } from 'bun:test';
import { deleteInPages } from '../../src/cli/deletion.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import type { Store } from '../../src/model/store.ts';
import {
  commitWrites,
  createRealmFixture,
  mintId,
  oidcLink,
  WRITTEN,
} from '../records/contract/store_fixtures.ts';
import { freshDatabase } from '../support/database.ts';

/** More links than a page deletes. */
const LINKS = LIMITS.cascadeRecordsMax + 1;

test('a deletion in pages gives up after ten rounds while links are created as fast, and succeeds once they are not', async () => {
  const { records, close } = await (await freshDatabase()).open();
  const here = await createRealmFixture(records);
  const target = { resource: user, key: [here.realm, here.user] } as const;
  let pages = 0;
  const busy: Pick<Store, 'countBelow' | 'removePage'> = {
    countBelow: records.countBelow,
    async removePage(removal) {
      pages += 1;
      const links = Array.from({ length: LINKS }, () => oidcLink(here, mintId()));
      expect(await commitWrites(records, ...links)).toEqual(WRITTEN);
      return records.removePage(removal);
    },
  };
  const deleted = LIMITS.deletionRoundsMax * LIMITS.cascadeRecordsMax;
  await expect(deleteInPages(busy, target)).rejects.toThrow(
    `${deleted} records are deleted, but others were created meanwhile: stop the clients that write below this record`,
  );
  expect(pages).toBe(LIMITS.deletionRoundsMax);
  expect(await deleteInPages(records, target)).toBe(1 + LIMITS.deletionRoundsMax);
  expect(await records.get(user, target.key)).toBeUndefined();
  await close();
});
