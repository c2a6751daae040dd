import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { ERASING_TEXTS } from '../src/store/erasing.ts';
import { logTexts } from '../src/store/log.ts';
import { LOG_READING_TEXTS } from '../src/store/log_reading.ts';
import { SALT_TEXTS } from '../src/store/salts.ts';
import { SQLITE } from '../src/store/sqlite/dialect.ts';
import { knownMigrations } from '../src/store/sqlite/open.ts';

const TABLE = /\b(change|act|realm_clock|user_salt|erasure)\b/;

test.each([...logTexts(SQLITE), ...LOG_READING_TEXTS, ...SALT_TEXTS, ...ERASING_TEXTS])(
  'a long log costs what a short one does: %s',
  (text) => {
    const db = new Database(':memory:');
    for (const { sql } of knownMigrations()) db.run(sql);
    const plan = db.query<{ detail: string }, []>(`explain query plan ${text}`).all();
    const steps = plan.map(({ detail }) => detail);
    expect(steps.filter((step) => TABLE.test(step) && !step.startsWith('SEARCH '))).toEqual([]);
    expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
    if (!text.startsWith('insert into')) expect(steps.some((step) => TABLE.test(step))).toBe(true);
    db.close();
  },
);
