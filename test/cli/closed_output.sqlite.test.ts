import { expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import { createFixture, startService } from '../support/service.ts';

const database = await freshDatabase();
await runClientCreate(database, 'realms:read');
const service = await startService();
await createFixture(service.db);

/** Runs a command once the reader of its output is gone. */
const UNREAD = `{ trap '' PIPE; while echo 2>/dev/null; do :; done; "$0" "$@"; echo "code $?" >&2; } | true`;

test.each([
  ['--help', 0, ['--help']],
  ['get --help', 0, ['get', '--help']],
  ['client list', 0, ['client', 'list', ...database.args]],
  ['keys list', 0, ['keys', 'list', ...database.args]],
  ['export -', 1, ['export', '-', ...service.database.args]],
] as const)('%s ends quietly if nobody reads its output', async (_, code, words) => {
  const { stderr } = await runCommand(['/bin/sh', '-c', UNREAD, AUTHREALM, ...words]);
  expect(stderr).toBe(`code ${code}\n`);
});
