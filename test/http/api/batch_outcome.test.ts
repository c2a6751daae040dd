import { expect, test } from 'bun:test';
import { FAULTS, Fault } from '../../../src/model/fault.ts';
import { user } from '../../../src/model/resources.ts';
import { createParents, FULL_SCOPE, kindOf, OFFLINE, rowCounts } from '../../support/resource_cases.ts';
import { startService } from '../../support/service.ts';

test('a committed batch whose records cannot be read is unknown_outcome, and can be repeated', async () => {
  let isUnreadable = false;
  const service = await startService(OFFLINE, (engine) => {
    const { get } = engine.records;
    const failing: typeof get = (resource, key) => {
      if (isUnreadable && resource.name === user.name) throw new Fault('unavailable');
      return get(resource, key);
    };
    return { ...engine, records: { ...engine.records, get: failing } };
  });
  const token = await service.token(FULL_SCOPE);
  const home = await createParents(service, token);
  const path = kindOf(user).collection(home);
  const requests = [{ method: 'POST', path, body: { data: kindOf(user).fresh(home) } }];
  const headers = { 'Idempotency-Key': crypto.randomUUID() };
  // Not the client of the service, which sends a 503 again.
  const send = () =>
    fetch(`${service.url}/v2/authentication-realms/${home.realm}/batch`, {
      method: 'POST',
      headers: { ...headers, Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ requests }),
    });
  isUnreadable = true;
  const lost = await send();
  expect([lost.status, await lost.json()]).toMatchObject([
    503,
    { errors: [{ detail: FAULTS.unknown_outcome.detail }] },
  ]);
  const counts = await rowCounts(service);
  isUnreadable = false;
  const repeated = await send();
  expect([repeated.status, await repeated.json()]).toMatchObject([200, { responses: [{ status: 201 }] }]);
  expect(await rowCounts(service)).toEqual(counts);
});
