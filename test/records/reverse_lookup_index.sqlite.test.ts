import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { oidcProfileInfo, passwordProfileInfo } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { newestBelowText } from '../../src/records/store/lists/newest_below.ts';
import { sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { freshFolder, ISSUER } from '../support/service.ts';
import { lookupKeyOf } from './contract/find.contract.ts';
import { commitWrites, createRealmFixture, oidcLink } from './contract/store_fixtures.ts';

/** The hash column only narrows a lookup; the value decides. */

const path = join(freshFolder(), 'finds.db');
const engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
const fixture = await createRealmFixture(engine.records);
afterAll(() => engine.close());

function change(sql: string): void {
  const db = connectSqlite(path);
  db.run(sql);
  db.close();
}

const find = (subject: string) =>
  engine.records.find(
    oidcProfileInfo,
    fixture.realm,
    lookupKeyOf(oidcProfileInfo, { issuer: ISSUER, subject }),
  );

test.each([1, 2, 8, 9, 40])(
  'a lookup among %d subjects with the same hash finds only its subject',
  async (count) => {
    const subjects = Array.from({ length: count }, (_, index) => `alike-${count}-${index}`);
    for (const subject of subjects) await commitWrites(engine.records, oidcLink(fixture, subject));
    // All get the hash of the first, as after collisions.
    change(
      `update oidc_profile_info set subject_crc = (select subject_crc from oidc_profile_info
       where subject = '${subjects[0]}') where subject like 'alike-${count}-%'`,
    );
    expect((await find(subjects[0] as string))?.record.subject).toBe(subjects[0] as never);
    change(
      `update oidc_profile_info set subject_crc = ${Bun.hash.crc32('unknown')} where subject like 'alike-${count}-%'`,
    );
    expect(await find('unknown')).toBeUndefined();
  },
);

test('a reverse lookup searches the index of the hash column', () => {
  const db = connectSqlite(path);
  const planOf = (sql: string) => db.query<{ detail: string }, []>(`explain query plan ${sql}`).all();
  expect(planOf('select slot from oidc_profile_info where subject_crc = 1 limit 9')[0]?.detail).toContain(
    'oidc_profile_info_subject_crc',
  );
  expect(
    planOf('select slot from password_profile_info where username_crc = 1 limit 9')[0]?.detail,
  ).toContain('password_profile_info_username_crc');
  db.close();
});

test('a lookup with include reads the newest links of a user from the index of their list, without a sort', () => {
  const db = connectSqlite(path);
  for (const link of [oidcProfileInfo, passwordProfileInfo]) {
    const select = newestBelowText(link, sqliteStatements(link).visible, ['+?', '+?']);
    const plan = db.query<{ detail: string }, string[]>(`explain query plan ${select}`).all('a', 'b');
    expect(plan.map(({ detail }) => detail)).toEqual([
      `SEARCH ${link.table} USING INDEX ${link.table}_of_user (realm_id=? AND user_id=?)`,
    ]);
  }
  db.close();
});
