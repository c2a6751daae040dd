import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { migrationsOf } from '../src/sql/migrations.ts';

/**
 * Writes the text of migration 1 for each engine to `test/sql/schema/`, which shows what a change of a description does, and which
 * the first release freezes (docs/releasing.md#make-a-release): run `npx bun scripts/write_schema.ts`.
 */

for (const engine of ['sqlite', 'postgres'] as const) {
  const path = fileURLToPath(new URL(`../test/sql/schema/${engine}.sql`, import.meta.url));
  writeFileSync(path, migrationsOf(engine)[0]?.sql ?? '');
  console.log(`${path} is up to date`);
}
