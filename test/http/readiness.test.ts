import { afterAll, beforeAll, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Service, startService } from '../support/service.ts';

/** Which dependency is in trouble, by real trouble of the database: tables that are not where they belong. */

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const LOOKED_AT_AGAIN = LIMITS.accessTableAgeMsMax + 1;

async function readiness(): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await service.get('/readyz');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect((await service.get('/healthz')).status).toBe(200);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const WELL = {
  status: 200,
  body: { status: 'ok', dependencies: { database: 'ok', access_table: 'ok' } },
};

/** All that an unready service says: nothing of where the database is, nothing of why. */
function unready(dependencies: { readonly database: string; readonly access_table: string }) {
  const errors = [
    { status: '503', title: 'Service Unavailable', detail: 'A dependency is in trouble; try again' },
  ];
  return { status: 503, body: { errors, dependencies } };
}

/** While a table is away. */
async function without(table: string, look: () => Promise<void>): Promise<void> {
  await service.database.query(`alter table ${table} rename to elsewhere`);
  try {
    await look();
  } finally {
    await service.database.query(`alter table elsewhere rename to ${table}`);
  }
}

test('well: each of them is ok', async () => {
  expect(await readiness()).toEqual(WELL);
});

test('clients that cannot be read are trouble of the access table alone', async () => {
  await without('client', async () => {
    await service.database.query('update instance set access_version = access_version + 1');
    service.clock.advance(LOOKED_AT_AGAIN);
    expect(await readiness()).toEqual(unready({ database: 'ok', access_table: 'in trouble' }));
  });
  expect(await readiness()).toEqual(WELL);
});

test('a database that cannot be read is felt at once, and by the access table when it is read again', async () => {
  expect(await readiness()).toEqual(WELL);
  await without('instance', async () => {
    const { status, body } = await readiness();
    expect([status, body.dependencies]).toEqual([503, expect.objectContaining({ database: 'in trouble' })]);
    service.clock.advance(LOOKED_AT_AGAIN);
    expect(await readiness()).toEqual(unready({ database: 'in trouble', access_table: 'in trouble' }));
  });
  expect(await readiness()).toEqual(WELL);
});

test('the log has the reason', () => {
  const faults = service.log.filter(({ event }) => event === 'fault');
  expect(faults.length).toBeGreaterThan(0);
  for (const fault of faults) {
    expect(fault).toMatchObject({ code: 'not_ready', route: '/readyz' });
    expect(fault).toHaveProperty('cause', expect.stringMatching(/^(SQLITE_[A-Z]+|[0-9A-Z]{5})$/));
  }
});
