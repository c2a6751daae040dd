import { expect, test } from 'bun:test';
import { changeClient } from '../../src/access/clients/clients.ts';
import type { Store } from '../../src/model/store.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import { createFixture, startService } from '../support/service.ts';
import { startReader } from '../support/started_reader.ts';

/** A search runs with the rights that its client had when the request arrived. */

const SEARCH = '/v2/user-authentication-info/search';
const BODY = { filter: 'eq(name,"Jane Doe")', page: { limit: 1 } };
/** Within this time every process applies a change of rights. */
const EFFECT_MS = 1_000;

/** The searches of all realms that were admitted and wait for `release`. */
const held = { waiting: 0, release: Promise.withResolvers<void>() };

function holding(engine: Engine): Engine {
  const hold =
    (search: Store['searchRealms']): Store['searchRealms'] =>
    async (...given) => {
      held.waiting += 1;
      await held.release.promise;
      return search(...given);
    };
  const { embedded, records } = engine;
  if (!embedded) return { ...engine, records: { ...records, searchRealms: hold(records.searchRealms) } };
  const searchDelegating: typeof embedded.searchDelegating = (whole) =>
    hold(embedded.searchDelegating(whole));
  return { ...engine, embedded: { ...embedded, searchDelegating } };
}

const service = await startService({}, holding);
held.release.resolve();
await startReader(service, await service.token('users:read'));
const homes = [await createFixture(service.db), await createFixture(service.db)];

test.each([
  ['whose client loses its scope', { scopes: new Set(['realms:read']) }, 403],
  ['whose client is disabled', { disabledAt: 1 }, 401],
] as const)('a search %s meanwhile is answered, and its next page is %p', async (_, patch, later) => {
  const { clientId, secret } = await service.client('users:read');
  const token = await service.grant({ clientId, secret });

  Object.assign(held, { waiting: 0, release: Promise.withResolvers<void>() });
  const searching = service.post(SEARCH, token, BODY);
  while (held.waiting === 0) await Bun.sleep(1);
  await changeClient(service.db.engine.access, clientId, patch, service.clock);
  service.clock.advance(EFFECT_MS);
  // Another request with the token is refused while the search runs.
  expect((await service.post(SEARCH, token, BODY)).status).toBe(later);
  held.release.resolve();
  const found = await searching;
  const { data, meta } = (await found.json()) as {
    readonly data: readonly { readonly id: string }[];
    readonly meta: { readonly realms: { readonly next: string } };
  };
  const [first] = homes.toSorted((one, other) => (one.realm < other.realm ? -1 : 1));
  expect([found.status, data.map(({ id }) => id), meta.realms.next]).toEqual([
    200,
    [first?.user as string],
    first?.realm as string,
  ]);
  const next = { ...BODY, page: { limit: 1, after_realm: meta.realms.next } };
  expect((await service.post(SEARCH, token, next)).status).toBe(later);
});
