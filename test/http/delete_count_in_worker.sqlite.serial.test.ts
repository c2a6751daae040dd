import { expect, test } from 'bun:test';
import { Fault } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { commitWrites, oidcLink, type RealmFixture, WRITTEN } from '../records/contract/store_fixtures.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import { createFixture, errorsOf, type Service, startService } from '../support/service.ts';

/** The dependents of a DELETE that is rejected for their number are counted in a worker process. */

/** A count that a busy machine does not finish in time. */
const UNCOUNTED =
  'data.id: more than 1000 records would go with this one: authrealm delete --in-pages removes them';

const REALMS = '/v2/authentication-realms';
const LINKS = 3 * LIMITS.cascadeRecordsMax;

/** Creates a realm with a user that has LINKS links. */
async function createUserWithLinks({ db }: Service): Promise<RealmFixture> {
  const { realm: id, user: owner, oidcProfile, passwordProfile } = await createFixture(db);
  const ids = { realm: id, user: owner, oidc: oidcProfile, passwords: passwordProfile };
  const links = Array.from({ length: LINKS }, (_, at) => oidcLink(ids, `${at}`));
  expect(await commitWrites(db.engine.records, ...links)).toEqual(WRITTEN);
  return ids;
}

async function detailOf(answer: Response): Promise<string | undefined> {
  return (await errorsOf(answer))[0]?.detail;
}

test('a DELETE with too many dependents is 422 with their number, counted in another process', async () => {
  const refuse = () => Promise.reject(new Error('counted in the serving process'));
  const service = await startService(OFFLINE, (engine) => ({
    ...engine,
    records: { ...engine.records, countBelow: refuse },
  }));
  const token = await service.token(FULL_SCOPE);
  const ids = await createUserWithLinks(service);
  let detail: string | undefined = UNCOUNTED;
  while (detail === UNCOUNTED) {
    const answer = await service.del(`${REALMS}/${ids.realm}`, token);
    expect(answer.status).toBe(422);
    detail = await detailOf(answer);
  }
  expect(detail).toBe(
    `data.id: ${LINKS + 5} records would go with this one, more than 1000: authrealm delete --in-pages removes them`,
  );
});

test.each(['overloaded', 'unavailable'] as const)(
  'a DELETE with too many dependents is 422 without their number if the count is %s',
  async (code) => {
    const refuse = () => Promise.reject(new Fault(code));
    const service = await startService({ ...OFFLINE, database: 'sqlite::memory:' }, (engine) => ({
      ...engine,
      records: { ...engine.records, countBelow: refuse },
    }));
    const token = await service.token(FULL_SCOPE);
    const ids = await createUserWithLinks(service);
    const answer = await service.del(`${REALMS}/${ids.realm}/user-authentication-info/${ids.user}`, token);
    expect([answer.status, await detailOf(answer)]).toEqual([422, UNCOUNTED]);
    const ofProfile = await service.del(`${REALMS}/${ids.realm}/oidc-profiles/${ids.oidc}`, token);
    expect([ofProfile.status, await detailOf(ofProfile)]).toEqual([
      422,
      `${UNCOUNTED}, and GET /v2/authentication-realms/{realm_id}/user-authentication-oidc-profile-info?filter=eq(oidc_profile_id,…) lists its links`,
    ]);
  },
);
