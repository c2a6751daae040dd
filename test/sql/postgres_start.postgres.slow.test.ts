import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import {
  futureMigration,
  knownMigrations,
  migratedDatabase,
  migrateTo,
  migrationVersions,
  openPostgres,
  rejectionMessage,
} from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';

/** Starts on a server that stops answering at a certain statement: the start fails with the cause. */

const server = await sharedServer();

const { storeWaitMsMax } = LIMITS;
/** Time for the rest of the start on a busy machine. */
const GRACE_MS = 10_000;

/** Statements of a start, each with a word that is in no other. */
const STATEMENTS: readonly (readonly [query: string, word: string])[] = [
  ['the pooler check', 'pg_backend_pid'],
  ['the schema lookup', 'installed_schema'],
  ['the list of applied migrations', 'serves_from from migration'],
  ['the privilege check', 'has_table_privilege'],
  ['the check for Citus', 'extname'],
];

describe.concurrent('a start on a server that stalls', () => {
  for (const [query, word] of STATEMENTS) {
    test(`a start times out when the server stalls at ${query}`, async () => {
      const url = new URL(await migratedDatabase());
      const proxy = await startTcpProxy(server.port);
      url.port = String(proxy.port);
      const intercepted = proxy.faultNext(word, 'silent');
      const started = performance.now();
      const message = await rejectionMessage(openPostgres(url.href));
      const elapsed = performance.now() - started;
      await intercepted;
      proxy.stop();
      expect(message).toMatch(/cannot be opened: the server did not answer in time \(DATABASE_TIMEOUT\)/);
      expect([elapsed > storeWaitMsMax - 100, elapsed < storeWaitMsMax + GRACE_MS]).toEqual([true, true]);
    }, 300_000);
  }

  test('a start times out when the server stalls from the beginning', async () => {
    const url = new URL(await migratedDatabase());
    const proxy = await startTcpProxy(server.port);
    url.port = String(proxy.port);
    proxy.stall();
    expect(await rejectionMessage(openPostgres(url.href))).toMatch(
      /cannot be opened: .*in time|did not answer with the PostgreSQL protocol/,
    );
  }, 300_000);

  test('a start waits for the statements of a migration without a time limit', async () => {
    const url = await migratedDatabase();
    const seconds = storeWaitMsMax / 1_000 + 1;
    await migrateTo(url, [
      ...knownMigrations,
      { ...futureMigration, sql: `select pg_sleep(${seconds}); ${futureMigration.sql}` },
    ]);
    expect(await migrationVersions(url)).toEqual(
      [...knownMigrations, futureMigration].map(({ version }) => version),
    );
  }, 300_000);
});
