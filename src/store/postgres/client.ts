import { SQL } from 'bun';
import type { PostgresAddress } from './address.ts';

const CONNECT_SECONDS_MAX = 4;

/** The driver for one host of an address, with at most so many connections. */
export function openClient(address: PostgresAddress, connectionsMax: number): SQL {
  const { hosts, database, user, password, isPrepared } = address;
  const [first] = hosts;
  return new SQL({
    adapter: 'postgres',
    hostname: first?.host,
    port: first?.port,
    database,
    username: user,
    password: password ?? '',
    max: connectionsMax,
    prepare: isPrepared,
    connectionTimeout: CONNECT_SECONDS_MAX,
  });
}
