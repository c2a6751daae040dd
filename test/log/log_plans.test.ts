import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { feedTexts } from '../../src/deliver/store/feed.ts';
import { erasingTexts } from '../../src/log/store/erase.ts';
import { logTexts } from '../../src/log/store/log.ts';
import { logReadingTexts } from '../../src/log/store/reading.ts';
import { userKeyTexts } from '../../src/log/store/user_keys.ts';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { withoutRealmNumbers } from '../support/query_plans.ts';

/** Table names, and their aliases in the texts. */
const TABLE = /\b(log_entry|act|realm_clock|user_salt|erasure|k|e|p)\b/;

const TEXTS = [
  ...[logTexts(SQLITE), logReadingTexts(SQLITE), feedTexts(SQLITE)].flatMap((texts) => Object.values(texts)),
  ...[...Object.values(userKeyTexts(SQLITE)), ...Object.values(erasingTexts(SQLITE))],
];

test.each(TEXTS)('a query costs the same on a long log as on a short one: %s', (text) => {
  const db = new Database(':memory:');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  const plan = db.query<{ detail: string }, []>(`explain query plan ${text}`).all();
  const steps = plan.map(({ detail }) => detail);
  expect(steps.filter((step) => TABLE.test(step) && !step.startsWith('SEARCH '))).toEqual([]);
  expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
  // A query about one user does not read the entries of other users.
  const ofOthers = withoutRealmNumbers(steps).filter(
    (step) => !/user_id=\?|^SEARCH [ep] .*realm_id=\? AND seq[<>]\?/.test(step),
  );
  if (/user_id = (?:unhex\()?\?/.test(text)) expect(ofOthers.filter((step) => TABLE.test(step))).toEqual([]);
  if (!text.startsWith('insert into')) expect(steps.some((step) => TABLE.test(step))).toBe(true);
  db.close();
});
