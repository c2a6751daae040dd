import type { SQL } from 'bun';
import { type MigrateMode, type Migration, migrationsIn, type Program } from '../migrations.ts';
import type { PostgresAddress } from './address.ts';
import { type Indexes, readIndexes } from './indexes.ts';
import { judgeSchema, migrate } from './migrate.ts';
import { placeOf, proveSameSchema, roleOf } from './place.ts';
import { openAlone } from './primary.ts';
import { proveUse } from './rights.ts';

const MIGRATIONS_URL = new URL('./migrations/', import.meta.url);

/** The migrations of this release, in order. */
export function knownMigrations(): readonly Migration[] {
  return migrationsIn(MIGRATIONS_URL);
}

/**
 * Brings the schema up as `mode` says, by the role of `owner` where there is one, and proves that the role of `address`
 * can serve. Answers the indexes there are. Throws Refusal where it cannot be served.
 */
export async function makeReady(
  address: PostgresAddress,
  mode: MigrateMode,
  program: Program,
  owner: PostgresAddress | undefined,
): Promise<Indexes> {
  const migrations = knownMigrations();
  const serving = await openAlone(address);
  try {
    if (owner && mode !== 'off') await bringUpAs(owner, serving, mode, { migrations, program });
    else {
      await judgeSchema(serving, mode, migrations, program);
      if (mode !== 'off') await migrate(serving, migrations, program);
    }
    await proveUse(serving, await placeOf(serving));
    return await readIndexes(serving);
  } finally {
    await serving.close();
  }
}

/** What brings a schema up, and to where. */
interface Release {
  readonly migrations: readonly Migration[];
  readonly program: Program;
}

/** Brings the schema up by the role that owns it, and lets the one that serves use it. */
async function bringUpAs(
  address: PostgresAddress,
  serving: SQL,
  mode: MigrateMode,
  { migrations, program }: Release,
): Promise<void> {
  const owner = await openAlone(address);
  try {
    await judgeSchema(owner, mode, migrations, program);
    await migrate(owner, migrations, program, await roleOf(serving));
    await proveSameSchema(serving, await placeOf(owner));
  } finally {
    await owner.close();
  }
}
