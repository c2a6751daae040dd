import type { SQL } from 'bun';
import { LIMITS } from '../../domain/limits.ts';
import { type MigrateMode, type Migration, migrationsIn, type Program } from '../migrations.ts';
import type { PostgresAddress } from './address.ts';
import { asOwner } from './advice.ts';
import { asking } from './asking.ts';
import { type Indexes, readIndexes } from './indexes.ts';
import { judgeSchema, migrate } from './migrate.ts';
import { placeOf, proveSameDatabase, proveSameSchema, roleOf } from './place.ts';
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
    const looking = asking(serving, LIMITS.storeWaitMsMax);
    await proveUse(looking, await placeOf(looking));
    return await readIndexes(looking);
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
  const owner = await asOwner(openAlone(address));
  try {
    const looking = asking(serving, LIMITS.storeWaitMsMax);
    await proveSameDatabase(looking, asking(owner, LIMITS.storeWaitMsMax));
    await judgeSchema(owner, mode, migrations, program);
    await migrate(owner, migrations, program, await roleOf(looking));
    await proveSameSchema(looking, await placeOf(asking(owner, LIMITS.storeWaitMsMax)));
  } finally {
    await owner.close();
  }
}
