import type { ScrubResult } from '../../audit/port.ts';
import { LIMITS } from '../../domain/limits.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { PostgresAddress } from './address.ts';
import { connectToPrimary } from './primary.ts';
import { clientWithTimeout } from './sql_client.ts';

/** The tables that hold values of users, in plain text or encrypted. */
const TABLES_WITH_USER_VALUES = [...RESOURCES.map(({ table }) => table), 'user_salt', 'idempotency'];
const MAY_VACUUM = `select bool_and(pg_has_role(c.relowner, 'usage')) as may from pg_class c
  where c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace(quote_ident(current_schema()))
    and c.relname = any($1::text[])`;
const POSITION = 'select pg_current_wal_insert_lsn()::text as position';

/**
 * Vacuums the tables if this role owns them, and returns the position of the write-ahead log after which nothing holds
 * the deleted rows. The log and archives before that position are up to the operator of the database.
 */
export async function scrubPostgres(address: PostgresAddress): Promise<ScrubResult> {
  const client = await connectToPrimary(address);
  try {
    const own = clientWithTimeout(client, LIMITS.doctorQueryMsMax);
    const [rights] = await own.unsafe<{ may: boolean }[]>(MAY_VACUUM, [
      `{${TABLES_WITH_USER_VALUES.join()}}`,
    ]);
    const isVacuumed = rights?.may === true;
    if (isVacuumed) await own.unsafe(`vacuum (index_cleanup on) ${TABLES_WITH_USER_VALUES.join(', ')}`);
    const [row] = await own.unsafe<{ position: string }[]>(POSITION);
    return { kind: 'archived', position: row?.position ?? '', isVacuumed };
  } finally {
    await client.close();
  }
}
