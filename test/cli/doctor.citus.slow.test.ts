import { expect, test } from 'bun:test';
import { EXIT } from '../../src/ops/process/exit.ts';
import { freshDatabase } from '../support/database.ts';
import { createHealthyFixture, runDoctorOn } from '../support/doctor_report.ts';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture, type Fixture, startService } from '../support/service.ts';

/** `doctor` and `audit verify` on a cluster, whose nodes share no snapshot. */

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
    expect([unhealthy, report('integrity').unchecked]).toEqual([[], undefined]);
    expect(count).toBeGreaterThan(before);
  }
  isWriting = false;
  await Promise.all(writers);
}, 300_000);

test('audit verify reports a record that a node of a cluster has lost', async () => {
  const { realm, passwordLink } = fixtures[0] as Fixture;
  await database.tamper(
    `delete from password_profile_info where realm_id = '${realm}' and id = '${passwordLink}'`,
  );
  const { code, stdout } = await runAuthrealm(['audit', 'verify', '--records', ...database.args]);
  expect([code, stdout]).toEqual([EXIT.failed, expect.stringContaining(passwordLink)]);
}, 300_000);
