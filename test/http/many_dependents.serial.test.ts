import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { commitWrites, oidcLink, type RealmFixture, WRITTEN } from '../records/contract/store_fixtures.ts';
import { testInProcess } from '../support/program_service.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import { createFixture, errorsOf, type Service, startService } from '../support/service.ts';

/** Responses about records with more dependents than a commit may delete. */

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

test('concurrent DELETE requests with too many dependents are 422', async () => {
  const service = await startService(OFFLINE);
  const token = await service.token(FULL_SCOPE);
  const ids = await createUserWithLinks(service);
  const pending = Array.from({ length: 10 }, () => service.del(`${REALMS}/${ids.realm}`, token));
  for (const answer of await Promise.all(pending)) {
    expect([answer.status, (await errorsOf(answer))[0]?.detail]).toEqual([
      422,
      'data.id: more than 1000 records would go with this one: authrealm delete --in-pages removes them',
    ]);
  }
});

testInProcess('a PUT without members updates updated_at, and its change names it', async () => {
  const service = await startService(OFFLINE);
  const token = await service.token(FULL_SCOPE);
  const { records } = service.db.engine;
  const ids = await createFixture(service.db);
  const before = await records.get(user, [ids.realm, ids.user]);
  const { length } = await records.changes(ids.realm, 0, 10);
  service.clock.advance(60_000);
  const path = `${REALMS}/${ids.realm}/user-authentication-info/${ids.user}`;
  expect((await service.put(path, token, { data: { type: user.type } })).status).toBe(200);
  const after = await records.get(user, [ids.realm, ids.user]);
  expect(after?.updated_at).toBeGreaterThan(before?.updated_at as number);
  const changes = await records.changes(ids.realm, length, 10);
  expect(changes.map(({ event, members }) => [event, members])).toEqual([
    [`${user.name}.updated`, ['updated_at']],
  ]);
});
