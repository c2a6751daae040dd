import { expect, setDefaultTimeout, test } from 'bun:test';
import { runImport } from '../support/import_fixtures.ts';
import { populationLines } from '../support/population.ts';
import { createFixture, startService } from '../support/service.ts';

setDefaultTimeout(300_000);

/** A search that looks for one change behind very many. */

/** Each has three changes. */
const USERS = 33_300;

test('a search finds one change behind 100,000 in at most three requests of less than 20 KB', async () => {
  const service = await startService();
  const jane = await createFixture(service.db);
  const writer = await service.client('users:write');
  const path = `/v2/authentication-realms/${jane.realm}/user-authentication-info/${jane.user}`;
  const data = { type: 'user_authentication_info', name: 'Renamed once' };
  expect((await service.put(path, await service.grant(writer), { data })).status).toBe(200);
  service.clock.advance(60_000);
  const imported = await runImport(service.db, Buffer.from([...populationLines(USERS)].join('\n')), {
    pieceBytes: 1_000_000,
  });
  expect(imported.refusals).toEqual([]);

  const token = await service.token('changes:read');
  let next: string | null = `/v2/changes/search?actor=${writer.clientId}`;
  const found: unknown[] = [];
  let requests = 0;
  let bytes = 0;
  while (next !== null && found.length === 0) {
    const answer = await service.get(next, token);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    const page = JSON.parse(text) as { data: readonly unknown[]; links: { next: string | null } };
    found.push(...page.data);
    next = page.links.next;
    requests += 1;
    bytes += text.length;
  }
  expect(found).toHaveLength(1);
  expect(requests).toBeLessThanOrEqual(3);
  expect(bytes).toBeLessThan(20_000);
});
