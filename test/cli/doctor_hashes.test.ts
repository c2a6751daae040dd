import { expect, test } from 'bun:test';
import { passwordProfileInfo } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { createFixture, insertRecord, PASSWORD_HASH } from '../support/service.ts';

test('doctor notes how many hashes of each realm cost more than a check may, and finds nothing wrong', async () => {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  const [first, second] = [await createFixture(db), await createFixture(db)];
  const bcrypt = (cost: number) => `$2b$${cost}$${'.'.repeat(53)}`;
  const tooCostly = PASSWORD_HASH.replace('m=19456,t=2', 'm=262144,t=3');
  for (const [at, password_hash] of [
    [first, bcrypt(12)],
    [first, bcrypt(14)],
    [first, bcrypt(14)],
    [second, tooCostly],
  ] as const) {
    const id = systemClock.mintId();
    const members = { username: `costly-${id}`, password_profile_id: at.passwordProfile, password_hash };
    await insertRecord(db, passwordProfileInfo, [at.realm, at.user, id], members);
  }
  await db.engine.close();
  const doctor = await runDoctorOn(database);
  expect(doctor.unhealthy).toEqual([]);
  const { notes, notesTotal, unchecked } = doctor.report('password hashes');
  const note = (realm: string, start: string) => ({
    says: `${start} cost more than a check may: nobody can sign in with them until the password is set again`,
    table: 'password_profile_info',
    realm,
  });
  expect([notesTotal, unchecked]).toEqual([2, undefined]);
  expect(new Set(notes)).toEqual(
    new Set([
      note(first.realm, '2 password hashes that begin with $2b$14$'),
      note(second.realm, '1 password hashes that begin with $argon2id$v=19$m=262144,t=3,p=1$'),
    ]),
  );
});
