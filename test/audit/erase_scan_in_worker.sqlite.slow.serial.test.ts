import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import type { ScrubResult } from '../../src/audit/port.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createFixture, databaseFile, oidcPath, startService } from '../support/service.ts';

/** Lookups while a user is erased from a large file. */

setDefaultTimeout(300_000);

const USERS = 600_000;

/** Inserts users without links by SQL: requests would take minutes. */
function insertUsers(path: string, realm: string): void {
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

/** Leaves deleted rows in the file, as a program does that does not overwrite what it deletes. */
function leaveDeletedRows(path: string, text: string): void {
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

/** CPU time of this process in milliseconds, which does not depend on other processes. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** CPU time of one scan of the records. */
function scan(path: string, text: string): number {
  const db = new Database(path, { readonly: true });
  const begun = cpuMs();
  const columns = ['name', 'name_key', 'email', 'email_key', 'given_name', 'family_name', 'middle_name'];
  const where = columns.map((column) => `instr(${column}, ?1) > 0`).join(' or ');
  db.prepare(`select 1 from user_info where ${where}`).get(text);
  db.close();
  return cpuMs() - begun;
}

test('an erasure over HTTP scans the whole file, and no lookup waits for the scan', async () => {
  const scrubbed = Promise.withResolvers<ScrubResult>();
  let isDone = false;
  const service = await startService({}, (engine) => ({
    ...engine,
    async scrub(texts, options) {
      const result = await engine.scrub(texts, options);
      isDone = true;
      scrubbed.resolve(result);
      return result;
    },
  }));
  const path = databaseFile(service);
  const fixture = await createFixture(service.db);
  const erasedText = systemClock.mintId();
  const erasedValues = { realm: fixture.realm, subject: erasedText, username: erasedText };
  const erased = await createFixture(service.db, erasedValues);
  insertUsers(path, fixture.realm);
  leaveDeletedRows(path, erasedText);
  const scanned = scan(path, erasedText);
  const token = await service.token('admin oidc-profile-infos:read');
  const data = { realm_id: erased.realm, user_id: erased.user };
  const erasing = service.post('/admin/v1/erasures', token, { data });
  let longest = 0;
  let lookups = 0;
  while (!isDone) {
    const begun = cpuMs();
    expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
    longest = Math.max(longest, cpuMs() - begun);
    lookups += 1;
  }
  expect([(await erasing).status, await scrubbed.promise]).toEqual([201, { kind: 'left' }]);
  expect(lookups).toBeGreaterThan(100);
  expect(longest).toBeLessThan(scanned / 2);
});
