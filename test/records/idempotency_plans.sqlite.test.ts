import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { idempotencyTexts } from '../../src/records/store/idempotency.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { freshFolder } from '../support/folder.ts';

test('no statement about idempotency records scans the table', async () => {
  const path = join(freshFolder(), 'idempotency.db');
  const program = { version: 'test', clock: systemClock };
  await (await openEngine({ engine: 'sqlite', path }, 'auto', program)).close();
  const db = new Database(path, { readonly: true });
  for (const text of Object.values(idempotencyTexts(SQLITE))) {
    const plan = db.query<{ detail: string }, []>(`explain query plan ${text}`).all();
    const steps = plan.map(({ detail }) => detail).filter((detail) => detail.includes('idempotency'));
    expect([text, steps.filter((step) => !/^SEARCH idempotency USING /.test(step))]).toEqual([text, []]);
    if (!text.startsWith('insert into')) expect([text, steps.length > 0]).toEqual([text, true]);
  }
  db.close();
});
