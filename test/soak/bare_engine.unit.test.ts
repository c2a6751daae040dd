import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillBare } from '../../bench/import_rate.ts';

/** What the bench compares imports and creates with: the engine alone, over the tables of this release. */

const folder = mkdtempSync(join(tmpdir(), 'authrealm-bare-'));

afterAll(() => rmSync(folder, { recursive: true }));

test('every row and its change are written, as the tables are now', () => {
  const path = join(folder, 'bare.db');
  expect(fillBare(path, 10)).toBeGreaterThan(0);
  const db = new Database(path, { readonly: true });
  const count = (table: string) =>
    db.query(`select count(*) as n from ${table}`).get() as { readonly n: number };
  expect(count('user_info').n).toBe(10);
  const rows = [
    'realm',
    'oidc_profile',
    'password_profile',
    'user_info',
    'oidc_profile_info',
    'password_profile_info',
  ];
  expect(count('log_entry').n).toBe(rows.reduce((sum, table) => sum + count(table).n, 0));
  db.close();
});
