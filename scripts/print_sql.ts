import { RESOURCES } from '../src/model/resources.ts';
import { postgresStatements } from '../src/records/store/postgres/dialect.ts';
import { sqliteStatements } from '../src/records/store/sqlite/dialect.ts';
import { numberParameters } from '../src/sql/postgres/parameters.ts';

/**
 * Prints the SQL that the store derives from the description of a resource, for both engines:
 * `npx bun scripts/print_sql.ts oidc-profile-info`. Without an argument it lists the resources.
 */

const [resourceName] = process.argv.slice(2);
const resource = RESOURCES.find((each) => each.name === resourceName);
if (!resource) {
  console.error(`pass the name of a resource: ${RESOURCES.map((each) => each.name).join(', ')}`);
  process.exit(2);
}
const engines = [
  ['SQLite', sqliteStatements(resource), (text: string) => text],
  ['PostgreSQL', postgresStatements(resource), (text: string) => numberParameters(text).text],
] as const;
for (const [engine, statements, format] of engines) {
  console.log(`-- ${engine}`);
  for (const [statement, text] of Object.entries(statements))
    if (typeof text === 'string') console.log(`\n-- ${statement}\n${format(text)}`);
  console.log();
}
