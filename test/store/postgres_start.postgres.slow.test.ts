import { beforeAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { known, migrated, migrateTo, next, open, refusal, versions } from '../support/postgres_schemas.ts';
import { type PostgresServer, sharedServer } from '../support/postgres_server.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';

/** A start whose server says nothing more, just then: it ends, and says why. */

let server: PostgresServer;
beforeAll(async () => {
  server = await sharedServer();
});

const { storeWaitMsMax } = LIMITS;
/** What is not waited for: the rest of the start, on a machine that has other work. */
const GRACE_MS = 2_500;

/** Statements of a start, by a word that stands in no other. */
const STATEMENTS: readonly (readonly [what: string, word: string])[] = [
  ['whether a pooler is there', 'pg_backend_pid'],
  ['which schema it is', 'schema_of_ours'],
  ['what was applied', 'serves_from from migration'],
  ['what the role may do', 'has_table_privilege'],
  ['which indexes there are', 'indisunique'],
];

describe.concurrent('a server that stalls when it is asked', () => {
  for (const [what, word] of STATEMENTS) {
    test(`${what} is given up in time`, async () => {
      const url = new URL(await migrated());
      const proxy = await startTcpProxy(server.port);
      url.port = String(proxy.port);
      const sprung = proxy.trap(word, 'silent');
      const started = performance.now();
      const told = await refusal(open(url.href));
      const took = performance.now() - started;
      await sprung;
      proxy.stop();
      expect(told).toMatch(/cannot be opened: it did not answer in time \(DATABASE_TIMEOUT\)/);
      expect([took > storeWaitMsMax - 100, took < storeWaitMsMax + GRACE_MS]).toEqual([true, true]);
    }, 300_000);
  }

  test('for everything at once is given up in time', async () => {
    const url = new URL(await migrated());
    const proxy = await startTcpProxy(server.port);
    url.port = String(proxy.port);
    proxy.stall();
    expect(await refusal(open(url.href))).toMatch(
      /cannot be opened: .*in time|does not answer as PostgreSQL/,
    );
    proxy.stop();
  }, 300_000);

  test('to do what a migration says is waited for, however long that takes', async () => {
    const url = await migrated();
    const seconds = storeWaitMsMax / 1_000 + 1;
    await migrateTo(url, [...known, { ...next, sql: `select pg_sleep(${seconds}); ${next.sql}` }]);
    expect(await versions(url)).toEqual([...known, next].map(({ version }) => version));
  }, 300_000);
});
