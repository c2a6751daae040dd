import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { deliveryTexts } from '../../src/deliver/store/deliveries.ts';
import { webhookProgressTexts } from '../../src/deliver/store/progress.ts';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';

const TABLE = /\b(k|p|realm_clock|webhook_progress|delivery|dead_letter)\b/;

/** Scans that run once an hour or once in a few hundred messages: of all targets, and of dead letters by age. */
const FULL_SCAN = /^select webhook_id from webhook order/;
const SCANS_BY_AGE = /^delete from dead_letter where \(webhook_id, realm_id, first_seq\) in/;

test.each(
  [...Object.values(webhookProgressTexts(SQLITE)), ...Object.values(deliveryTexts(SQLITE))].filter(
    (text) => !FULL_SCAN.test(text),
  ),
)('a webhook query costs the same with many realms and deliveries as with few: %s', (text) => {
  const db = new Database(':memory:');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  const plan = db.query<{ detail: string }, []>(`explain query plan ${text}`).all();
  const steps = plan.map(({ detail }) => detail);
  const scans = steps.filter((step) => TABLE.test(step) && !step.startsWith('SEARCH '));
  expect(scans).toEqual(SCANS_BY_AGE.test(text) ? ['SCAN dead_letter'] : []);
  expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
  if (text.includes('behind_since > 0')) expect(steps.join()).toContain('webhook_progress_behind');
  if (text.includes('attempts = 0\n')) expect(steps.join()).toContain('dead_letter_waiting');
  db.close();
});
