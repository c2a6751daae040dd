import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import {
  createFixture,
  errorsOf,
  type Fixture,
  oidcPath,
  type Service,
  startService,
} from '../support/service.ts';

/** Writes are queued only while they can be expected to finish soon. */

let service: Service;

const user = () => ({
  data: {
    type: 'user_authentication_info',
    name: 'Jane Doe',
    email: `jane-${crypto.randomUUID()}@example.com`,
  },
});

/** The estimate that rejects writes of a realm before authentication. */
const areWritesOverloaded = ({ realm }: Fixture) => service.db.engine.records.overloaded.write(realm);

async function startWithRealms() {
  let commits = 0;
  service = await startService({}, (engine) => {
    const commit: typeof engine.records.commit = (...args) => {
      commits += 1;
      return engine.records.commit(...args);
    };
    return { ...engine, records: { ...engine.records, commit } };
  });
  const [fixture, other] = [await createFixture(service.db), await createFixture(service.db)];
  const token = await service.token('users:write users:read oidc-profile-infos:read');
  const users = ({ realm }: Fixture) => `/v2/authentication-realms/${realm}/user-authentication-info`;
  const create = (where: Fixture = fixture, bearer = token) =>
    service.withoutRetry.post(users(where), bearer, user());
  return { fixture, other, token, create, commits: () => commits };
}

/**
 * Lets the service measure the duration of writes. They are concurrent, so that on a slow machine, too, they share commits and
 * the estimate admits the writes of a test.
 */
async function measureWrites(create: () => Promise<Response>): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    const responses = await Promise.all(Array.from({ length: LIMITS.workSampleMin }, () => create()));
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 201));
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(5);
}

test('while the database is locked for longer than workWaitMsMax, writes beyond workAdmittedMin are 503', async () => {
  const { fixture, other, token, create } = await startWithRealms();
  await measureWrites(create);
  const release = await service.database.lockWriters();
  const locked = performance.now();
  const waiting = Array.from({ length: LIMITS.workAdmittedMin + 20 }, () => create());
  await until(() => performance.now() - locked > LIMITS.workWaitMsMax && areWritesOverloaded(fixture));

  const refused = await create();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect((await errorsOf(refused))[0]?.detail).toBe('Too much work of this kind is waiting; try again');
  // Before authentication, and with the realm ID in any letter case.
  expect((await create(fixture, 'none')).status).toBe(503);
  const upper = { ...fixture, realm: fixture.realm.toUpperCase() as Fixture['realm'] };
  expect((await create(upper)).status).toBe(503);
  // At once: the admitted ones are still waiting.
  const pending = waiting.filter((each) => Bun.peek.status(each) === 'pending');
  expect(pending.length).toBeGreaterThanOrEqual(LIMITS.workAdmittedMin);
  expect((await service.withoutRetry.get(oidcPath(fixture), token)).status).toBe(200);

  // On an engine that writes realms separately, a write of another realm is admitted.
  const writesRealmsSeparately = service.db.engine.embedded === undefined;
  const otherRealm = create(other);
  if (!writesRealmsSeparately) expect((await otherRealm).status).toBe(503);
  await release();
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201).length).toBeGreaterThanOrEqual(LIMITS.workAdmittedMin);
  if (writesRealmsSeparately) expect((await otherRealm).status).toBe(201);
  expect((await create()).status).toBe(201);
}, 300_000);

test('fewer writes than workAdmittedMin wait for a locked database, and succeed', async () => {
  const { create, commits } = await startWithRealms();
  await measureWrites(create);
  const before = commits();
  const release = await service.database.lockWriters();
  const first = create();
  await Bun.sleep(LIMITS.workWaitMsMax * 2);
  const waiting = Array.from({ length: LIMITS.workAdmittedMin / 2 }, () => create());
  await until(() => commits() === before + 1 + waiting.length);
  await release();
  for (const answer of await Promise.all([first, ...waiting])) expect(answer.status).toBe(201);
}, 300_000);
