import { migrationsOf, type Program } from '../../sql/migrations.ts';
import { assertPostgresSchema } from '../../sql/postgres/migrate.ts';
import { connectToPrimary } from '../../sql/postgres/primary.ts';
import { withAdvice } from '../../sql/refusals.ts';
import { connectSqlite } from '../../sql/sqlite/connection.ts';
import { fileSize } from '../../sql/sqlite/database_files.ts';
import { assertSqliteSchema } from '../../sql/sqlite/migrate.ts';
import { addressName, type DatabaseAddress } from './open.ts';

/**
 * Returns the missing migrations, in order, and the newest schema that this program knows, or that of the database if it is newer.
 * Changes nothing. Throws Refusal for a database that is newer than the program, or another program's.
 */
export async function pendingMigrations(address: DatabaseAddress, program: Program) {
  const known = migrationsOf(address.engine);
  const newest = known.at(-1)?.version ?? 0;
  const found = await withAdvice(addressName(address), async () => {
    if (address.engine === 'postgres') {
      const client = await connectToPrimary(address);
      return assertPostgresSchema(client, 'auto', known, program).finally(() => client.close());
    }
    if (fileSize(address.path) === 0) {
      if (program.missingDatabase) throw program.missingDatabase;
      return undefined;
    }
    using db = connectSqlite(address.path);
    return assertSqliteSchema(db, 'auto', newest, program);
  });
  const migrations = known.filter(({ version }) => version > (found ?? 0));
  return { newest: Math.max(newest, found ?? 0), migrations };
}
