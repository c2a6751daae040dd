import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ENTRY_COLUMNS } from '../../src/log/store/entry_row.ts';
import { openRowMacs } from '../../src/log/store/row_macs.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { SIGNED_PASSWORD } from '../../src/sign_in/store/password_macs.ts';
import { migrationsOf } from '../../src/sql/migrations.ts';
import {
  clientRealmTable,
  clientTable,
  consoleLinkTable,
  consoleSessionTable,
  migrationTable,
  signingKeyTable,
} from '../../src/sql/tables/installation.ts';
import { actTable, logEntryTable } from '../../src/sql/tables/realm_data.ts';
import { memberKind } from '../../src/sql/tables/records.ts';
import { schemaText } from '../../src/sql/tables/schema.ts';
import { kindOf, table } from '../../src/sql/tables/table.ts';
import { TABLES } from '../../src/sql/tables/tables.ts';
import { webhookTable } from '../../src/sql/tables/webhooks.ts';
import { freshFolder } from '../support/folder.ts';

/** A check, or the expression of a generated column: no pragma returns them. */
const EXPRESSIONS = /\b(?:check|as) \((?:[^()]|\([^()]*\))*\)/g;

/**
 * The columns, keys, foreign keys, checks, indexes and triggers after these migrations, in whatever order they were added. An index of a
 * key has no name, because its number follows that order.
 */
function objectsAfter(migrations: readonly string[]): readonly string[] {
  const db = new Database(':memory:');
  for (const sql of migrations) db.run(sql);
  const rows = (sql: string, ...names: string[]) =>
    db.query<Record<string, unknown>, string[]>(sql).all(...names);
  const objects = rows(`select name, sql from sqlite_schema where type = 'table'`).flatMap((found) => {
    const [name, sql] = [String(found.name), String(found.sql)];
    const references = Map.groupBy(
      rows('select * from pragma_foreign_key_list(?) order by id, seq', name),
      ({ id }) => id,
    );
    const indexes = rows('select name, "unique", origin, partial from pragma_index_list(?)', name);
    return [
      ...rows('select name, type, "notnull", dflt_value, pk, hidden from pragma_table_xinfo(?)', name),
      ...rows('select type, wr, strict from pragma_table_list(?)', name),
      ...[...references.values()].map((columns) => columns.map(({ id: _, ...column }) => column)),
      ...indexes.map(({ name: index, ...others }) => [
        { ...others, ...(others.origin === 'c' ? { index } : {}) },
        rows('select name, "desc", coll from pragma_index_xinfo(?) where key order by seqno', String(index)),
      ]),
      ...(sql.match(EXPRESSIONS) ?? []),
      ...rows(
        `select sql from sqlite_schema where tbl_name = ? and type <> 'table' and sql is not null`,
        name,
      ),
    ].map((object) => [name, object]);
  });
  db.close();
  return objects.map((object) => JSON.stringify(object)).sort();
}

const described = TABLES.filter((each) => each !== migrationTable);

describe('the descriptions of tables', () => {
  test('the HMAC of a row covers these columns in this order: one fewer, or another order, breaks those that are stored', () => {
    const signed = [
      ...[clientTable, clientRealmTable, signingKeyTable, consoleLinkTable, consoleSessionTable],
      ...[webhookTable, SIGNED_PASSWORD, actTable],
    ].map((table) => `${table.name}: ${table.signed.join(' ')}`);
    expect(signed).toEqual([
      'client: client_id name scopes all_realms disabled_at secret_digest previous_digest previous_expires_at ' +
        'created_at updated_at revision implicit end_user_address',
      'client_realm: client_id realm_id',
      'signing_key: kid public_jwk created_at signs_from withdrawn_at',
      'console_link: digest label scopes realms created_at expires_at',
      'console_session: session_id actor scopes realms rules begun_at renewed_at ends_at person',
      'webhook: webhook_id name url events realms with_data events_max skipped_client previous_expires_at ' +
        'disabled_at created_at updated_at revision',
      'password_profile_info: realm_id user_id id password_profile_id username_key password_hash credential_version',
      'act: seq id action actor object realm_id user_id address request_id detail at',
    ]);
  });

  test('a further column changes the HMAC of those rows alone that have a value in it', () => {
    const macs = openRowMacs();
    macs.useKeys({ rowMac: (text) => Buffer.from(text) });
    const { mac, ...columns } = consoleLinkTable.columns;
    const next = table({ ...consoleLinkTable, columns: { ...columns, note: 'text?', device: 'text?', mac } });
    const times = { createdAt: 1, expiresAt: 2 };
    const link = { digest: 'd', label: 'l', scopes: new Set<never>(), realms: '*', ...times } as const;
    const stored = macs.signedRow(consoleLinkTable, link);
    expect(macs.signedRow(next, link)).toEqual({ ...stored, note: null, device: null });
    const noted = macs.signedRow(next, { ...link, note: 'n' });
    expect([
      macs.isRowForged(next, { ...stored, note: null, device: null }),
      macs.isRowForged(next, { ...stored, note: 'n', device: null }),
      macs.isRowForged(next, noted),
      macs.isRowForged(next, { ...noted, note: null }),
      macs.isRowForged(next, { ...noted, note: null, device: 'n' }),
    ]).toEqual([false, true, false, true, true]);
  });

  test('a table with a column after its HMAC is an error, because values are in the order of columns', () => {
    const columns = { id: 'text', mac: 'mac?', note: 'text' } as const;
    const create = () => table({ name: 'thing', placement: 'one node', columns, key: ['id'] });
    expect(create).toThrow('the last column of thing must be its HMAC');
  });

  test('the columns of a log entry are in the order of the values that are inserted', () => {
    expect(logEntryTable.names).toBe(`realm_id, ${ENTRY_COLUMNS}`);
  });

  test('a row is read as it was written', () => {
    const link = { digest: 'd', label: 'l', scopes: new Set(['users:read']), createdAt: 0, expiresAt: 1 };
    const [one, other] = ['b', 'a'] as never[];
    const stored = consoleLinkTable.encode({ ...link, realms: new Set([one, other]) as never });
    expect(stored).toEqual({
      digest: 'd',
      label: 'l',
      scopes: 'users:read',
      realms: 'b a',
      created_at: 0,
      expires_at: 1,
    });
    expect(consoleLinkTable.read({ ...stored, expires_at: '1', mac: null })).toEqual({
      ...link,
      realms: new Set([other, one]) as never,
    });
    const key = { kid: 'k', publicJwk: '{}', privateSealed: new Uint8Array([1]), createdAt: 1, signsFrom: 2 };
    expect(signingKeyTable.read(signingKeyTable.encode(key))).toEqual({ ...key, withdrawnAt: undefined });
  });

  test('a member of a type without a kind of column is an error', () => {
    const member = { name: 'born', schema: z.date(), annotation: {} };
    expect(() => memberKind(member)).toThrow('born has no kind of column, because its type is date');
  });

  test.each(['sqlite', 'postgres'] as const)('test/sql/schema has the text of migration 1: %s', (engine) => {
    // If this fails before the first release, run: npx bun scripts/write_schema.ts
    const kept = readFileSync(join(import.meta.dir, `schema/${engine}.sql`), 'utf8');
    expect(migrationsOf(engine)[0]?.sql).toBe(kept);
  });

  test('migrations in a folder replace the generated one, and without the first they are an error', () => {
    const folder = freshFolder();
    writeFileSync(join(folder, '0002_note.sql'), 'create table note (id text);');
    expect(() => migrationsOf('sqlite', folder)).toThrow(`${folder} begins with migration 2 instead of 1`);
    writeFileSync(join(folder, '0001_directory.sql'), 'create table realm (id text);');
    expect(migrationsOf('sqlite', folder)).toEqual([
      { version: 1, name: 'directory', sql: 'create table realm (id text);' },
      { version: 2, name: 'note', sql: 'create table note (id text);' },
    ]);
  });

  test('a migrated SQLite database has the tables as they are described', () => {
    expect(objectsAfter(migrationsOf('sqlite').map(({ sql }) => sql))).toEqual(
      objectsAfter([schemaText(described, 'sqlite')]),
    );
  });

  test.each([
    ['without a unique key', ',\n  unique (realm_id, id)', ''],
    ['without a check', ',\n  check (singleton = 1)', ''],
    ['with another check', 'check (singleton = 1)', 'check (singleton = 2)'],
    ['without a default', ' default 0', ''],
    ['with another value of a generated column', `as ('${NIL_UUID}')`, `as ('another')`],
    ['with a stored instead of a computed column', 'virtual', 'stored'],
    [
      'with two foreign keys instead of one',
      'foreign key (realm_id, user_id) references user_info (realm_id, id)',
      'foreign key (realm_id) references user_info (realm_id),\n  foreign key (user_id) references user_info (id)',
    ],
    ['with another order of a key', 'primary key (client_id, realm_id)', 'primary key (realm_id, client_id)'],
    ['with a column that may be null', 'store_id text not null', 'store_id text'],
    ['with a table that is not strict', ' strict', ''],
    ['with an index of all rows', ' where told_at is null', ''],
    ['with an index that is not unique', 'create unique index', 'create index'],
    ['with another trigger', 'after update of words on', 'after update on'],
  ])('a SQLite database %s does not have the tables as they are described', (_, part, other) => {
    const text = schemaText(described, 'sqlite');
    const changed = text.replace(part, other);
    expect(changed).not.toBe(text);
    expect(objectsAfter([changed])).not.toEqual(objectsAfter([text]));
  });

  test('an update of a row sets all columns but its key, its HMAC last', () => {
    for (const { name, key, columns, update, updated } of TABLES) {
      const others = Object.keys(columns).filter((column) => !key.includes(column));
      expect([name, updated]).toEqual([name, others]);
      for (const [column, of] of Object.entries(columns))
        if (kindOf(of).kind === 'mac') expect(update).toEndWith(` ${column} = ?`);
    }
  });
});
