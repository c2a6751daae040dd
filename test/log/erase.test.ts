import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { COMMAND_LINE } from '../../src/model/log/audit_entry.ts';
import { changeOf } from '../../src/model/log/change.ts';
import type { Key } from '../../src/model/resource.ts';
import { passwordProfileInfo } from '../../src/model/resources.ts';
import { foldedKey } from '../../src/model/text/folded_key.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openSignInBudgets } from '../../src/sign_in/budgets.ts';
import { freshDatabase } from '../support/database.ts';
import { createErasureFixture, runErase, withDatabase } from '../support/erasure_fixtures.ts';
import { freshFolder } from '../support/folder.ts';
import { ofRecord, ofUser } from '../support/log_rows.ts';
import { AUTHREALM, killCommands, runCommand } from '../support/processes.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { createFixture, type Fixture, insertRecord } from '../support/service.ts';

/** `authrealm erase user` and `subject-access`, next to a running service. */

afterAll(killCommands);

function countWrongPassword(
  { engine, logKeys }: OpenDatabase,
  { realm: realmId, passwordProfile: profileId, username }: Fixture,
): Promise<void> {
  const name = { realmId, profileId, usernameKey: foldedKey(username) };
  const budgets = openSignInBudgets(engine.budgets, logKeys, systemClock);
  return budgets.countWrong({ ...name, clientId: 'shop', address: undefined, device: undefined });
}

async function renameLink(
  { engine }: OpenDatabase,
  key: Key,
  username: string,
  at = systemClock.now(),
): Promise<void> {
  const patch = { members: { username }, revision: systemClock.mintRevision(), at };
  const changed = { key, revision: patch.revision, members: ['username'] };
  const change = changeOf(passwordProfileInfo, 'updated', changed, { ...COMMAND_LINE, at: patch.at });
  const write = { op: 'patch', resource: passwordProfileInfo, key, patch, change } as const;
  expect((await engine.records.commit([write])).kind).toBe('written');
}

describe('erase user', () => {
  test('an erased user is gone from records and log, and the log verifies clean', async () => {
    const { database, fixture } = await createErasureFixture();
    const { realm, user: id } = fixture;
    const buckets = () => database.query('select 1 from sign_in_budget where realm_id = ?', realm);
    await withDatabase(database, async (db) => {
      await countWrongPassword(db, fixture);
      const { passwordLink, username } = fixture;
      await renameLink(db, [realm, id, passwordLink], `former ${username}`);
      await countWrongPassword(db, { ...fixture, username: `former ${username}` });
      await renameLink(db, [realm, id, passwordLink], `latest ${username}`);
    });
    expect(await buckets()).toHaveLength(2);
    const { code, stdout, stderr } = await runErase(database, realm, id);
    expect([code, stderr]).toEqual([0, '']);
    expect(await buckets()).toEqual([]);
    expect(stdout).toContain(`user ${id} is erased`);
    const { engine } = database.address;
    const where = ofUser(engine);
    expect(await database.query(`select 1 from user_info where ${ofRecord(engine)}`, id)).toEqual([]);
    for (const table of ['oidc_profile_info', 'password_profile_info']) {
      expect(await database.query(`select 1 from ${table} where ${where}`, id)).toEqual([]);
    }
    expect(await database.query(`select 1 from user_salt where ${where}`, id)).toEqual([]);
    const events = await database.queryChanges<{ event: string }>(
      'select event from change where user_id = ? order by seq desc limit 2',
      id,
    );
    expect(events.map(({ event }) => event)).toEqual([
      'user-authentication-info.erased',
      'user-authentication-info.deleted',
    ]);
    expect(await verifyCleanRecords(database)).toEqual({ covered: 6, notCovered: 0 });
    const file = join(freshFolder(), 'log.ndjson');
    await runCommand([AUTHREALM, 'audit', 'verify', '--export', file, ...database.args]);
    const entries = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.includes(id));
    expect(entries.filter((line) => line.includes('"personal"')).length).toBeGreaterThan(3);
    for (const line of entries) expect(JSON.parse(line).personal ?? 'erased').toBe('erased');
    expect(entries.some((line) => JSON.parse(line).what === 'user.erased')).toBe(true);
    // Again, as after an interruption: nothing is left to erase, and the command succeeds.
    expect((await runErase(database, realm, id)).code).toBe(0);
  });

  test('an erasure deletes the budgets of a former username whose creation the log no longer has', async () => {
    const { database, fixture } = await createErasureFixture();
    const { realm, user: id, passwordLink, username } = fixture;
    const buckets = () => database.query('select 1 from sign_in_budget where realm_id = ?', realm);
    await withDatabase(database, async (db) => {
      await countWrongPassword(db, fixture);
      const renamedAt = systemClock.now() + 1_000;
      await renameLink(db, [realm, id, passwordLink], `latest ${username}`, renamedAt);
      expect(await db.engine.log.trim(realm, renamedAt)).toBeGreaterThan(0);
    });
    expect(await buckets()).toHaveLength(1);
    expect((await runErase(database, realm, id)).code).toBe(0);
    expect(await buckets()).toEqual([]);
  });

  test('an erased user with more links than one commit takes is erased in several', async () => {
    const database = await freshDatabase();
    const fixture = await withDatabase(database, async (db) => {
      const created = await createFixture(db);
      const { realm, user: id, passwordProfile } = created;
      const link = (name: string) =>
        insertRecord(db, passwordProfileInfo, [realm, id, systemClock.mintId()], {
          username: name,
          password_profile_id: passwordProfile,
        });
      for (let done = 0; done < LIMITS.cascadeRecordsMax + 200; done += 200) {
        await Promise.all(Array.from({ length: 200 }, (_, index) => link(`many-${done + index}`)));
      }
      return created;
    });
    const { code, stderr } = await runErase(database, fixture.realm, fixture.user);
    expect([code, stderr]).toEqual([0, '']);
    expect(await database.query('select 1 from password_profile_info')).toEqual([]);
    expect(await verifyCleanRecords(database)).toEqual({ covered: 3, notCovered: 0 });
  });

  test('an erasure of an unknown user is rejected and not logged', async () => {
    const database = await freshDatabase();
    const fixture = await withDatabase(database, createFixture);
    const { code, stderr } = await runErase(database, fixture.realm, systemClock.mintId());
    expect([code, stderr]).toEqual([1, expect.stringContaining('no user ')]);
    expect(await database.query('select 1 from erasure')).toEqual([]);
  });
});

describe('subject access', () => {
  test('subject access returns every record and log entry of one user, and is logged', async () => {
    const { database, fixture, texts } = await createErasureFixture();
    const { realm, user: id } = fixture;
    const { code, stdout } = await runCommand([AUTHREALM, 'subject-access', realm, id, ...database.args]);
    expect(code).toBe(0);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ kind }) => kind === 'record')).toHaveLength(3);
    for (const text of texts.filter((_, index) => index % 2 === 0)) expect(stdout).toContain(text);
    expect(stdout).not.toContain('$argon2id');
    const entries = await withDatabase(database, async ({ engine }) => engine.log.entries(NIL_UUID, 0, 100));
    expect(entries.at(-1)?.columns).toMatchObject({ action: 'user.told', user_id: id });
  });
});
