import { expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/cli.ts';
import { freshMasterKey } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { runAuthrealm } from '../support/processes.ts';

const ID = '01234567-89ab-cdef-0123-456789abcdef';
const LINES = join(freshFolder(), 'lines.ndjson');
writeFileSync(LINES, '');

/** The commands that create a missing database; `restore` replaces one by a backup. */
const CREATING = ['serve', 'worker', 'init', 'restore'];

/** What commands need in addition to a database. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'client create': ['--name', 'n', '--scope', 'users:read'],
  'client update': [ID, '--name', 'n'],
  'client delete': [ID, '--yes'],
  'client rotate': [ID],
  'console link': ['--scope', 'users:read'],
  'console sessions end': [ID],
  'keys withdraw': ['kid'],
  'webhook create': ['--name', 'n', '--url', 'https://example.com/hook'],
  'webhook update': [ID, '--name', 'n'],
  'webhook delete': [ID, '--yes'],
  'webhook rotate': [ID],
  'webhook deliveries': [ID],
  'webhook redeliver': [ID, '--all'],
  import: [LINES],
  backup: ['--to', 'backup.db'],
  delete: ['realm', ID, '--in-pages', '--yes'],
  'erase user': [ID, ID, '--yes'],
  'subject-access': [ID, ID],
};

/** Every command that opens the database of its settings, by its words. */
async function commandsOfDatabase(): Promise<readonly string[]> {
  const wordsOf = (command: Command, above: readonly string[]): string[] =>
    command.commands.flatMap((each) => {
      const words = [...above, each.name()];
      const hasDatabase = each.options.some(({ long }) => long === '--database');
      return [...(hasDatabase ? [words.join(' ')] : []), ...wordsOf(each, words)];
    });
  return wordsOf(await createProgram({}, () => undefined), []).filter((each) => !CREATING.includes(each));
}

const COMMANDS = await commandsOfDatabase();

/** Paths of results are in this folder. */
const inFolder = (command: string, folder: string) =>
  (ARGUMENTS[command] ?? []).map((word) =>
    /^(new\.key|backup\.db)$/.test(word) ? join(folder, word) : word,
  );

test.each(COMMANDS)(
  '%s on a missing SQLite file fails, names the file, and creates nothing',
  async (command) => {
    const folder = freshFolder();
    const database = join(folder, 'none.db');
    const words = [...command.split(' '), ...inFolder(command, folder), '--database', database];
    const { code, stdout, stderr } = await runAuthrealm(words);
    expect([code, readdirSync(folder)]).toEqual([1, []]);
    expect(stdout + stderr).toContain(database);
    expect(stdout + stderr).toMatch(
      /(is missing or empty: pass|there is no database) .*create it with "?authrealm init/,
    );
  },
);

test('import --dry-run and migrate --print on a missing SQLite file fail, and create nothing', async () => {
  const folder = freshFolder();
  for (const words of [
    ['import', LINES, '--dry-run'],
    ['migrate', '--print', 'pending'],
  ]) {
    const { code, stderr } = await runAuthrealm([...words, '--database', join(folder, 'none.db')]);
    expect([code, stderr, readdirSync(folder)]).toEqual([
      1,
      expect.stringContaining('is missing or empty'),
      [],
    ]);
  }
});

// The owner of the tables creates them by `migrate` where the service may not; the others are about files.
const ON_SERVER = COMMANDS.filter((command) => !['migrate', 'backup', 'compact'].includes(command));
const url = await (await sharedServer()).freshDatabase();
const masterKeyFile = freshMasterKey();

test.each(ON_SERVER)('%s on a PostgreSQL database without tables fails and creates none', async (command) => {
  const words = [...command.split(' '), ...inFolder(command, freshFolder())];
  const settings = ['--database', url, '--master-key-file', masterKeyFile];
  const { code, stdout, stderr } = await runAuthrealm([...words, ...settings]);
  const sql = new SQL(url, { max: 1 });
  const tables = await sql`select relname from pg_class where relnamespace = 'public'::regnamespace`;
  await sql.close();
  expect([code, tables.length]).toEqual([1, 0]);
  expect(stdout + stderr).toMatch(
    /(is missing or empty|has no authrealm schema): .*create it with "?authrealm init/,
  );
});
