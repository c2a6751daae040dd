import { expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import { runCli } from '../../src/cli/cli.ts';
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

test('a broken connection ends a command with its error, unlike an output that nobody reads', async () => {
  const lines: string[] = [];
  const stderr = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
  const broken = Object.assign(new Error('EPIPE: broken pipe, write'), { code: 'EPIPE', syscall: 'write' });
  const environment = {
    get AUTHREALM_CONFIG(): string {
      throw broken;
    },
  };
  const code = await runCli(['client', 'list'], environment, {
    stdin: process.stdin,
    stdout: stderr,
    stderr,
  });
  expect({ code, lines }).toEqual({ code: 1, lines: ['authrealm: EPIPE: broken pipe, write\n'] });
});
