import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { systemAmbient } from '../src/ambient.ts';
import type { Scrubbed } from '../src/audit/port.ts';
import { databaseFile, oidcPath, plant, startService } from './kit.ts';

/** What lookups wait for while a user is erased from a big file. */

setDefaultTimeout(120_000);

const USERS = 400_000;

/** Users without anything below them, by hand: the program would take minutes. */
function crowd(path: string, realm: string): void {
  const db = new Database(path, { strict: true });
  db.run('pragma busy_timeout = 10000');
  db.prepare(
    `insert into user_info (realm_id, id, name, email, creation_status, name_key, email_key, unicode_version,
         created_at, updated_at, revision)
       with recursive n (i) as (select 1 union all select i + 1 from n where i < ${USERS})
       select ?1, printf('%08x-0000-4000-8000-000000000000', i), 'Crowd ' || i, i || '@crowd.example', 'COMPLETE',
         'crowd ' || i, i || '@crowd.example', '17', i, i, printf('%032x', i) from n`,
  ).run(realm);
  db.close();
}

/** As another program does that does not overwrite what it deletes. */
function leave(path: string, text: string): void {
  const db = new Database(path);
  db.run('pragma busy_timeout = 10000');
  db.run('pragma secure_delete = off');
  db.run('create table left_over (text text)');
  db.prepare(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 500)
    insert into left_over select ? || hex(randomblob(200)) from n`).run(text);
  db.run('drop table left_over');
  db.run('pragma wal_checkpoint(truncate)');
  db.close();
}

/** How long one look through the records takes, in milliseconds. */
function scan(path: string, text: string): number {
  const db = new Database(path, { readonly: true });
  const begun = performance.now();
  db.prepare('select 1 from user_info where instr(name, ?1) > 0 or instr(name_key, ?1) > 0').get(text);
  db.close();
  return performance.now() - begun;
}

test('an erasure over HTTP looks through the whole file, and no lookup waits for that', async () => {
  const scrubbed = Promise.withResolvers<Scrubbed>();
  let isDone = false;
  const service = await startService({}, (engine) => ({
    ...engine,
    async scrub(texts, how) {
      const found = await engine.scrub(texts, how);
      isDone = true;
      scrubbed.resolve(found);
      return found;
    },
  }));
  const path = databaseFile(service);
  const planted = await plant(service.vault);
  const mark = systemAmbient.mintId();
  const own = { realm: planted.realm, subject: mark, username: mark };
  const gone = await plant(service.vault, own);
  crowd(path, planted.realm);
  leave(path, mark);
  const scanMs = scan(path, mark);
  const token = await service.token('admin oidc-profile-infos:read');
  const data = { realm_id: gone.realm, user_id: gone.user };
  const erasing = service.post('/admin/v1/erasures', token, { data });
  let longest = 0;
  let lookups = 0;
  while (!isDone) {
    const asked = performance.now();
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    longest = Math.max(longest, performance.now() - asked);
    lookups += 1;
  }
  expect([(await erasing).status, await scrubbed.promise]).toEqual([201, { kind: 'left' }]);
  expect(lookups).toBeGreaterThan(100);
  expect(longest).toBeLessThan(scanMs / 2);
  await service.stop();
});
