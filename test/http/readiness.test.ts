import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { isCitusEngine } from '../support/citus_cluster.ts';
import { findPort } from '../support/daemons.ts';
import { serveTls } from '../support/outbound_servers.ts';
import { runAuthrealm } from '../support/processes.ts';
import { testInProcess } from '../support/program_service.ts';
import { startService } from '../support/service.ts';

/** The dependencies in the readiness response, with real errors of the database: renamed tables. */

const service = await startService();

const REREAD_MS = LIMITS.accessTableAgeMsMax + 1;

async function readiness(): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await service.get('/readyz');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect((await service.get('/healthz')).status).toBe(200);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const READY = {
  status: 200,
  body: {
    status: 'ok',
    dependencies: { database: 'ok', access_table: 'ok' },
    ...(isCitusEngine ? { nodes: { reachable: 3, total: 3 } } : {}),
  },
};

/** The whole response of an unready service, without the address of the database or the reason. */
function unready(dependencies: { readonly database: string; readonly access_table: string }) {
  const errors = [
    {
      status: '503',
      title: 'Service Unavailable',
      detail: 'A dependency is in trouble, or the service stops; try again',
      code: 'not_ready',
    },
  ];
  return { status: 503, body: { errors, dependencies } };
}

/** Runs `check` while a table is renamed. */
async function withoutTable(table: string, check: () => Promise<void>): Promise<void> {
  await service.database.query(`alter table ${table} rename to elsewhere`);
  try {
    await check();
  } finally {
    await service.database.query(`alter table elsewhere rename to ${table}`);
  }
}

test('readiness is 200 with every dependency ok', async () => {
  expect(await readiness()).toEqual(READY);
});

const ready = (...words: readonly string[]) => runAuthrealm(['ready', ...words]);

test('ready exits with 0 only if the service at its address answers lookups', async () => {
  const { port } = new URL(service.url);
  expect(await ready('--port', port, '--host', '0.0.0.0')).toEqual({
    stdout: 'ready\n',
    stderr: '',
    code: 0,
  });
  await withoutTable('instance', async () => {
    const { stderr, code } = await ready('--port', port);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^authrealm: not ready: http:\/\/127\.0\.0\.1:\d+\/readyz answered 503: in trouble: database(, access_table)?\n$/,
      ),
    ]);
  });
  const free = findPort();
  const { stderr, code } = await ready('--port', String(free));
  expect([code, stderr]).toEqual([
    1,
    `authrealm: no service listens on http://127.0.0.1:${free}/readyz: start it, or pass --port\n`,
  ]);
});

test('ready accepts a certificate of the public name of the service', async () => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  const server = await serveTls((socket) => socket.end(answer));
  const words = ['--port', String(server.port), '--tls-cert', 'chain.pem', '--tls-key', 'key.pem'];
  expect((await ready(...words)).code).toBe(0);
});

test('readiness is 503 for the access table alone if clients cannot be read', async () => {
  await withoutTable('client', async () => {
    await service.database.query('update instance set access_version = access_version + 1');
    service.clock.advance(REREAD_MS);
    expect(await readiness()).toEqual(unready({ database: 'ok', access_table: 'in trouble' }));
  });
  expect(await readiness()).toEqual(READY);
});

test('readiness is 503 at once if the database cannot be read, for the access table at its next read', async () => {
  expect(await readiness()).toEqual(READY);
  await withoutTable('instance', async () => {
    const { status, body } = await readiness();
    expect([status, body.dependencies]).toEqual([503, expect.objectContaining({ database: 'in trouble' })]);
    service.clock.advance(REREAD_MS);
    expect(await readiness()).toEqual(unready({ database: 'in trouble', access_table: 'in trouble' }));
  });
  expect(await readiness()).toEqual(READY);
});

testInProcess('the log has the cause of a failed readiness check', () => {
  const faults = service.log.filter(({ event }) => event === 'fault');
  expect(faults.length).toBeGreaterThan(0);
  for (const fault of faults) {
    expect(fault).toMatchObject({ code: 'not_ready', route: '/readyz' });
    expect(fault).toHaveProperty('cause', expect.stringMatching(/^(SQLITE_[A-Z]+|[0-9A-Z]{5})$/));
  }
});
