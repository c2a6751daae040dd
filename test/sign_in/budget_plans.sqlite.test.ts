import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { budgetTexts } from '../../src/sign_in/store/budgets.ts';

test('no statement about sign-in budgets sorts them', () => {
  const db = new Database(':memory:');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  for (const text of Object.values(budgetTexts(SQLITE)).flat()) {
    const plan = db.query<{ detail: string }, []>(`explain query plan ${text}`).all();
    expect([text, plan.filter(({ detail }) => detail.includes('TEMP B-TREE'))]).toEqual([text, []]);
  }
  db.close();
});
