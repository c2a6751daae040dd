import type { RecordSnapshot, StoredRecord } from '../../directory/store.ts';
import { NIL_UUID } from '../../domain/id.ts';
import type { SqlValue } from '../records/statements.ts';
import { asFault, type Connection } from './connection.ts';
import { statementsOf } from './dialect.ts';
import { BEGIN_READING } from './openings.ts';
import { numbered, sent } from './places.ts';
import type { Pool } from './pool.ts';

/** Takes a picture: a read transaction that stays open until it is closed. */
export function takePicture(pool: Pool): Promise<RecordSnapshot> {
  return new Promise<RecordSnapshot>((resolve, reject) => {
    pool
      .transaction(BEGIN_READING, async (connection) => {
        // A transaction sees the moment of its first read.
        await connection.ask('select 1 from instance', []);
        await new Promise<void>((end) => resolve(over(connection, end)));
        return { value: undefined, isKept: false };
      })
      .catch((error) => reject(asFault(error)));
  });
}

function over(connection: Connection, end: () => void): RecordSnapshot {
  async function all(text: string, values: readonly SqlValue[]) {
    try {
      const { text: said, order } = numbered(text);
      return (await connection.ask(said, sent(values, order))).rows;
    } catch (error) {
      throw asFault(error);
    }
  }

  return {
    async scan(resource, after, limit, within): Promise<readonly StoredRecord[]> {
      const { scan, scanRealm, decodePlaced } = statementsOf(resource);
      const place = [within ?? (after.realm || NIL_UUID), after.id || NIL_UUID, limit];
      return (await all(within ? scanRealm : scan, place)).map(decodePlaced);
    },
    async count(resource, within) {
      const { count, countRealm } = statementsOf(resource);
      const [row] = await (within ? all(countRealm, [within]) : all(count, []));
      return Number(row?.n ?? 0);
    },
    close: end,
  };
}
