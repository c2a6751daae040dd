import { expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import { createHealthyFixture, runDoctorOn } from '../support/doctor_report.ts';
import { createFixture, type Fixture, startService } from '../support/service.ts';

/** `doctor` on a cluster, whose nodes share no snapshot. */

const RUNS = 5;

const database = await freshDatabase();
const service = await startService(database.flags);
const realms = await Promise.all(Array.from({ length: 4 }, () => createHealthyFixture(service.db)));
const fixtures = realms.map(({ second }) => second);

test('doctor reports no problem in a cluster while records are written in several realms', async () => {
  let isWriting = true;
  let count = 0;
  const writers = fixtures.map(async ({ realm, oidcProfile, passwordProfile }) => {
    for (; isWriting; count += 1) await createFixture(service.db, { realm, oidcProfile, passwordProfile });
  });
  for (let run = 0; run < RUNS; run += 1) {
    const before = count;
    const { unhealthy, report } = await runDoctorOn(database);
    expect([unhealthy, report('changes').unchecked]).toEqual([[], undefined]);
    expect(count).toBeGreaterThan(before);
  }
  isWriting = false;
  await Promise.all(writers);
}, 300_000);

test('doctor reports a record that a node of a cluster has lost', async () => {
  const { realm, passwordLink } = fixtures[0] as Fixture;
  await database.tamper(
    `delete from password_profile_info where realm_id = '${realm}' and id = '${passwordLink}'`,
  );
  const { unhealthy, report } = await runDoctorOn(database);
  expect(unhealthy).toEqual(['changes']);
  expect(report('changes').findings).toMatchObject([{ table: 'password_profile_info', realm }]);
}, 300_000);
