import type { SQL } from 'bun';
import { type MigrateMode, migrationsOf, type Program } from '../migrations.ts';
import type { PostgresAddress } from './address.ts';
import { withOwnerSettings } from './advice.ts';
import { assertDistributed, assertNodesHaveCitus, isCitus } from './citus.ts';
import { openClient } from './client.ts';
import { assertPostgresSchema, migratePostgres } from './migrate.ts';
import { assertNoSharedStatementNames } from './pooler.ts';
import { openPrimary } from './primary.ts';
import { assertTableRights } from './rights.ts';
import { assertSameDatabase, assertSameSchema, currentRole, currentRoleSchema } from './schema_state.ts';
import { clientWithTimeout } from './sql_client.ts';

/**
 * Migrates the schema as `mode` says, as the role of `owner` where one is given, and checks that the role of `serving`
 * can serve. Closes that client. Returns whether its tables are distributed with Citus. Throws Refusal where it cannot be served.
 */
export async function prepareSchema(
  serving: SQL,
  mode: MigrateMode,
  program: Program,
  owner: PostgresAddress | undefined,
): Promise<boolean> {
  try {
    if (owner) await migrateAsOwner(owner, serving, mode, program);
    else await migrate(serving, mode, program);
    return await assertServable(serving);
  } finally {
    await serving.close();
  }
}

/** Throws Refusal where the role cannot serve a migrated schema. Returns whether its tables are distributed with Citus. */
export async function assertServable(serving: SQL): Promise<boolean> {
  const client = clientWithTimeout(serving);
  await assertTableRights(client, await currentRoleSchema(client));
  const isDistributed = await isCitus(client);
  if (isDistributed) {
    await assertDistributed(client);
    await assertNodesHaveCitus(client);
  }
  return isDistributed;
}

/** Migrates the schema as `mode` says, and grants its use to the role `user`. */
async function migrate(sql: SQL, mode: MigrateMode, program: Program, user?: string): Promise<void> {
  const migrations = migrationsOf('postgres');
  await assertPostgresSchema(sql, mode, migrations, program);
  await migratePostgres(sql, migrations, program, user);
}

/** Migrates the schema as its owner, and grants its use to the serving role. */
async function migrateAsOwner(
  address: PostgresAddress,
  serving: SQL,
  mode: MigrateMode,
  program: Program,
): Promise<void> {
  const primary = await withOwnerSettings(openPrimary(address));
  await assertNoSharedStatementNames(address, '--migrate-database', primary);
  const owner = openClient(address, 1, primary.current());
  try {
    const [client, ownerClient] = [clientWithTimeout(serving), clientWithTimeout(owner)];
    await assertSameDatabase(client, ownerClient);
    await migrate(owner, mode, program, await currentRole(client));
    await assertSameSchema(client, await currentRoleSchema(ownerClient));
  } finally {
    await owner.close();
  }
}
