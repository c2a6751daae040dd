import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { openRowMacs } from '../../src/store/auth/row_macs.ts';
import { migrationsOf } from '../../src/store/migrations.ts';
import { SIGNED_PASSWORD } from '../../src/store/records/password_macs.ts';
import {
  clientRealmTable,
  clientTable,
  consoleLinkTable,
  consoleSessionTable,
  migrationTable,
  signingKeyTable,
} from '../../src/store/tables/installation.ts';
import { actTable } from '../../src/store/tables/realm_data.ts';
import { memberKind } from '../../src/store/tables/records.ts';
import { schemaText } from '../../src/store/tables/schema.ts';
import { table } from '../../src/store/tables/table.ts';
import { TABLES } from '../../src/store/tables/tables.ts';
import { webhookTable } from '../../src/store/tables/webhooks.ts';

/** The columns, keys, foreign keys, indexes and triggers after these migrations, in whatever order they were added. */
function objectsAfter(migrations: readonly string[]): readonly string[] {
  const db = new Database(':memory:');
  for (const sql of migrations) db.run(sql);
  const rows = (sql: string) => db.query<Record<string, unknown>, []>(sql).all();
  const tables = rows(`select name from sqlite_schema where type = 'table'`).map(({ name }) => String(name));
  const objects = tables.flatMap((name) => [
    ...rows(
      `select '${name}' as "table", name, type, "notnull", pk, hidden from pragma_table_xinfo('${name}')`,
    ),
    ...rows(
      `select '${name}' as "table", "from", "table" as parent, "to" from pragma_foreign_key_list('${name}')`,
    ),
    ...rows(`select '${name}' as "table", type, wr, strict from pragma_table_list('${name}')`),
    ...rows(
      `select sql from sqlite_schema where tbl_name = '${name}' and type <> 'table' and sql is not null`,
    ),
  ]);
  db.close();
  return objects.map((object) => JSON.stringify(object)).sort();
}

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
      'console_link: digest label scopes realms expires_at',
      'console_session: session_id actor scopes realms rules begun_at renewed_at ends_at',
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
    const link = { digest: 'd', label: 'l', scopes: new Set<never>(), realms: '*', expiresAt: 1 } as const;
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

  test('a row is read as it was written', () => {
    const link = { digest: 'd', label: 'l', scopes: new Set(['users:read']), expiresAt: 1 };
    const [one, other] = ['b', 'a'] as never[];
    const stored = consoleLinkTable.encode({ ...link, realms: new Set([one, other]) as never });
    expect(stored).toEqual({
      digest: 'd',
      label: 'l',
      scopes: 'users:read',
      realms: 'b a',
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

  test.each(['sqlite', 'postgres'] as const)(
    'test/store/schema has the text of migration 1: %s',
    (engine) => {
      // If this fails before the first release, run: npx bun scripts/write_schema.ts
      const kept = readFileSync(join(import.meta.dir, `schema/${engine}.sql`), 'utf8');
      expect(migrationsOf(engine)[0]?.sql).toBe(kept);
    },
  );

  test('a migrated SQLite database has the tables as they are described', () => {
    const described = TABLES.filter((table) => table !== migrationTable);
    expect(objectsAfter(migrationsOf('sqlite').map(({ sql }) => sql))).toEqual(
      objectsAfter([schemaText(described, 'sqlite')]),
    );
  });

  test('an update of a row leaves its ciphertexts, which a change of the master key may have replaced', () => {
    expect(webhookTable.update).not.toContain('_sealed');
    expect(webhookTable.updated).not.toContain('webhook_id');
    expect(webhookTable.updated).toContain('mac');
  });
});
