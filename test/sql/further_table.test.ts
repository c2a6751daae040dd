import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckReport } from '../../src/ops/doctor/inspection.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Table } from '../../src/sql/tables/table.ts';
import { isCitusEngine } from '../support/citus_cluster.ts';
import { type Engine, freshDatabaseOf, newMasterKey } from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { copyProgram } from '../support/next_program.ts';
import { runCommand } from '../support/processes.ts';

/**
 * A copy of the program with one more table outside the resources: a description, and its place among the others. Everything else
 * follows from them.
 */

setDefaultTimeout(300_000);

const ENGINE = (process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') as Engine;

const DESCRIPTION = `
export const noteTable = table({
  name: 'note',
  placement: 'by realm',
  columns: {
    realm_id: 'id',
    note_id: 'text',
    tags: 'list',
    secret_sealed: 'sealed',
    due_at: 'instant?',
    mac: 'mac?',
  },
  key: ['realm_id', 'note_id'],
  indexes: { note_due: '(realm_id, due_at) where due_at is not null' },
});
`;

const folder = copyProgram();
const edit = (path: string, change: (text: string) => string) =>
  writeFileSync(join(folder, path), change(readFileSync(join(folder, path), 'utf8')));
edit('src/sql/tables/realm_data.ts', (text) => text + DESCRIPTION);
edit('src/sql/tables/tables.ts', (text) =>
  text
    .replace("} from './realm_data.ts'", "  noteTable,\n} from './realm_data.ts'")
    .replace('signInBudgetTable]', 'signInBudgetTable, noteTable]'),
);
const { noteTable } = (await import(join(folder, 'src/sql/tables/realm_data.ts'))) as {
  noteTable: Table & { readonly insert: string };
};

async function run(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand([join(folder, 'bin/authrealm'), ...words]);
  expect([stderr, code]).toEqual(['', 0]);
  return stdout;
}

const NOTE = {
  realm: systemClock.mintId(),
  noteId: 'n',
  tags: ['b', 'a'],
  secretSealed: new Uint8Array([1, 2, 3]),
  dueAt: systemClock.now(),
};

/** A database with the schema of the program, and a note without an HMAC. */
async function createDatabase(masterKey: string): Promise<TestDatabase> {
  const database = await freshDatabaseOf(ENGINE, masterKey);
  await run('init', ...database.args);
  const values = [...noteTable.values(NOTE as never), null];
  await database.tamper(noteTable.insert, ...(values as string[]));
  return database;
}

async function readNotes({ query }: TestDatabase): Promise<readonly object[]> {
  const notes = (await query<never>(noteTable.select)).map((row) => noteTable.read(row) as typeof NOTE);
  return notes.map((note) => ({ ...note, secretSealed: new Uint8Array(note.secretSealed) }));
}

test('a further table is created as it is described, and distributed like the others of a realm', async () => {
  const database = await createDatabase(newMasterKey());
  expect(await readNotes(database)).toEqual([NOTE]);
  expect(noteTable.signed).toEqual(['realm_id', 'note_id', 'tags', 'due_at']);
  const { checks } = JSON.parse(
    (await runCommand([join(folder, 'bin/authrealm'), 'doctor', '--json', ...database.args])).stdout,
  ) as { checks: readonly CheckReport[] };
  const findingsOf = (name: string) => checks.find(({ check }) => check === name)?.findings;
  expect(findingsOf('schema')).toEqual([]);
  // Its ciphertext is found by its kind, and is none.
  expect(findingsOf('sealed values')).toEqual([expect.objectContaining({ table: 'note' })]);
  const places = `select p.partmethod::text as method, p.colocationid = c.colocationid as is_near_clock
    from pg_dist_partition p, pg_dist_partition c
    where p.logicalrelid = 'note'::regclass and c.logicalrelid = 'realm_clock'::regclass`;
  if (isCitusEngine)
    expect(await database.query<object>(places)).toEqual([{ method: 'h', is_near_clock: true }]);
});

test('a further table is copied to SQLite, and back', async () => {
  const masterKey = newMasterKey();
  const source = await createDatabase(masterKey);
  const file = await freshDatabaseOf('sqlite', masterKey);
  const target = await freshDatabaseOf(ENGINE, masterKey);
  await run('copy', '--from', source.url, '--to', file.url);
  await run('copy', '--from', file.url, '--to', target.url);
  expect([await readNotes(file), await readNotes(target)]).toEqual([[NOTE], [NOTE]]);
});
