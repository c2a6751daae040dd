import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointLine, erasureLine } from '../../../src/log/checkpoint.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { EXIT } from '../../../src/ops/process/exit.ts';
import { backUp } from '../../../src/ops/store/backups/backup.ts';
import { applyErasures } from '../../../src/ops/store/backups/erasures.ts';
import {
  contentOf,
  createStoredDatabase,
  logKeysOf,
  openWithKeyOf,
  program,
  queryRows,
  recordsIn,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import { findInconsistencies } from '../../support/consistency.ts';
import { type Fixture, freshFolder } from '../../support/service.ts';

setDefaultTimeout(300_000);

async function createBackup(userCount: number) {
  const { path, users } = await createStoredDatabase(userCount);
  const backup = join(freshFolder(), 'taken.db');
  await backUp(path, { file: backup }, program);
  return { path, users, backup, ledger: join(freshFolder(), 'ledger.jsonl') };
}

/** Imports a new user with the ID of an erased one. */
async function importAgain(path: string, { realm, user }: Fixture): Promise<void> {
  const line = {
    type: 'user_authentication_info',
    realm_id: realm,
    id: user,
    name: 'New',
    email: 'new@example.com',
  };
  const file = join(freshFolder(), 'again.jsonl');
  writeFileSync(file, JSON.stringify(line));
  expect((await runOnFile(path, 'import', file)).code).toBe(EXIT.done);
}

describe('a user erased after the backup', () => {
  test('a restore leaves no identifier and no record of an erased user, and a consistent audit log', async () => {
    const { path, users, backup, ledger } = await createBackup(40);
    const erased = users.filter((_, at) => at % 3 === 0);
    const remaining = users.filter((_, at) => at % 3 !== 0);
    const at = program.clock.now();
    const keys = await logKeysOf(path);
    const checkpoint = checkpointLine([], { at, retentionDays: 90 }, keys);
    const lines = erased.map(({ realm, user }) => erasureLine({ realm, user, at }, keys));
    // As after a repeated erasure.
    writeFileSync(ledger, `${[checkpoint, ...lines, ...lines, checkpoint].join('\n')}\n`);
    const { code, stdout } = await runOnFile(
      path,
      'restore',
      backup,
      '--replace',
      '--yes',
      '--ledger',
      ledger,
      '--json',
    );
    expect(code).toBe(EXIT.done);
    expect(JSON.parse(stdout)).toMatchObject({
      erasures_applied: erased.length,
      users_erased: erased.length,
    });
    const bytes = readFileSync(path);
    const known = readFileSync(backup);
    for (const { subject, username } of erased)
      for (const text of [subject, username])
        expect([known.includes(text), bytes.includes(text)]).toEqual([true, false]);
    for (const { subject, username } of remaining)
      for (const text of [subject, username]) expect(bytes.includes(text)).toBe(true);
    const records = recordsIn(path);
    for (const { user, oidcLink, passwordLink } of erased)
      for (const id of [user, oidcLink, passwordLink]) expect(records.has(id)).toBe(false);
    expect(findInconsistencies(path)).toEqual([]);
    expect((await runOnFile(path, 'audit', 'verify')).code).toBe(EXIT.done);
    expect((await runOnFile(path, 'doctor')).stdout).toContain('healthy');
  });

  test('an erasure is applied once: a later user with the same ID is not erased', async () => {
    const { path, users } = await createStoredDatabase(3);
    const [first] = users as [Fixture, Fixture];
    const { realm, user } = first;
    const at = program.clock.now();
    const erase = (when: number) =>
      applyErasures(
        { path, knownUntil: when },
        [{ realm, user, at: when }],
        openWithKeyOf(path),
        program.clock,
      );
    expect(await erase(at)).toEqual({ applied: 1, users: 1 });
    await importAgain(path, first);
    expect(await erase(at)).toEqual({ applied: 0, users: 0 });
    expect(recordsIn(path).has(user)).toBe(true);
    expect(await erase(at + 1)).toEqual({ applied: 1, users: 1 });
    expect(recordsIn(path).has(user)).toBe(false);
  });

  test('a restore without a ledger applies the erasures that the replaced database knows', async () => {
    const { path, users, backup } = await createBackup(3);
    const [first, second, third] = users as [Fixture, Fixture, Fixture];
    for (const { realm, user } of [first, second])
      expect((await runOnFile(path, 'erase', 'user', '--yes', realm, user)).code).toBe(EXIT.done);
    rmSync(`${path}.checkpoints`);
    const known = contentOf(path).erasure?.length;
    for (let times = 0; times < 2; times += 1) {
      // The backup does not know them; the replaced database does, each time.
      const { code, stdout } = await runOnFile(path, 'restore', backup, '--replace', '--yes', '--json');
      expect([code, JSON.parse(stdout)]).toMatchObject([EXIT.done, { erasures_applied: 2, users_erased: 2 }]);
      const bytes = readFileSync(path);
      for (const { subject, username } of [first, second])
        for (const text of [subject, username]) expect(bytes.includes(text)).toBe(false);
      expect(bytes.includes(third.subject)).toBe(true);
      expect(contentOf(path).erasure).toHaveLength(known ?? 0);
    }
    expect(contentOf(path).user_salt?.filter((row) => row.includes(first.user))).toEqual([]);
    const verified = await runOnFile(path, 'audit', 'verify');
    expect([verified.code, verified.stdout + verified.stderr]).toEqual([EXIT.done, expect.anything()]);
  });

  test('a user in both the ledger and the database is erased once', async () => {
    const { path, users, backup } = await createBackup(2);
    const [first] = users as [Fixture];
    expect((await runOnFile(path, 'erase', 'user', '--yes', first.realm, first.user)).code).toBe(EXIT.done);
    const { code, stdout } = await runOnFile(path, 'restore', backup, '--replace', '--yes', '--json');
    expect([code, JSON.parse(stdout)]).toMatchObject([EXIT.done, { erasures_applied: 1, users_erased: 1 }]);
    expect(contentOf(path).act?.filter((row) => row.includes('user.erased'))).toHaveLength(1);
  });

  test('an erasure in the backup with a time after the backup does not prevent the erasure of the user', async () => {
    const { path, users } = await createStoredDatabase(2);
    const [first, second] = users as [Fixture, Fixture];
    const year = program.clock.now() + 366 * 86_400_000;
    queryRows(path, [
      `insert into erasure (realm_id, user_id, at) values ('${first.realm}', '${first.user}', ${year})`,
    ]);
    const backup = join(freshFolder(), 'taken.db');
    await backUp(path, { file: backup }, program);
    expect((await runOnFile(path, 'erase', 'user', '--yes', first.realm, first.user)).code).toBe(EXIT.done);
    const { code, stdout } = await runOnFile(path, 'restore', backup, '--replace', '--yes', '--json');
    expect([code, JSON.parse(stdout)]).toMatchObject([EXIT.done, { erasures_applied: 1, users_erased: 1 }]);
    const records = recordsIn(path);
    expect([records.has(first.user), records.has(second.user)]).toEqual([false, true]);
  });

  test('an applied erasure removes all records below the user', async () => {
    const { path, users } = await createStoredDatabase(1);
    const [only] = users as [Fixture];
    const { realm, user, oidcProfile } = only;
    const more = Array.from({ length: LIMITS.cascadeRecordsMax + 5 }, (_, at) => ({
      type: 'user_authentication_oidc_profile_info',
      realm_id: realm,
      user_authentication_info_id: user,
      id: crypto.randomUUID(),
      subject: `more-${at}`,
      issuer: 'https://login.example.com/',
      oidc_profile_id: oidcProfile,
    }));
    const file = join(freshFolder(), 'more.jsonl');
    writeFileSync(file, more.map((line) => JSON.stringify(line)).join('\n'));
    const imported = await runOnFile(path, 'import', file);
    expect(imported.code).toBe(EXIT.done);
    await applyErasures(
      { path, knownUntil: program.clock.now() },
      [{ realm, user, at: program.clock.now() }],
      openWithKeyOf(path),
      program.clock,
    );
    const content = contentOf(path);
    for (const table of ['user_info', 'oidc_profile_info', 'password_profile_info'])
      expect([table, content[table]]).toEqual([table, []]);
  });

  test('a ledger with a user that the backup does not contain is applied without an error', async () => {
    const { path, users, backup, ledger } = await createBackup(1);
    const unknown = { realm: users[0]?.realm as Uuid, user: program.clock.mintId() };
    const at = program.clock.now();
    writeFileSync(ledger, erasureLine({ ...unknown, at }, await logKeysOf(path)));
    const { code, stdout } = await runOnFile(
      path,
      'restore',
      backup,
      '--replace',
      '--yes',
      '--ledger',
      ledger,
    );
    expect([code, stdout]).toEqual([EXIT.done, expect.stringMatching(/^users_erased +0$/m)]);
  });
});
