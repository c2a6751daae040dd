import { SQL } from 'bun';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  type DatabaseAddress,
  type Engine,
  openEngine,
  type PostgresAddress,
} from '../../../src/ops/store/open.ts';
import { credentialsContract, type OpenCredentials } from './credentials.contract.ts';
import { findContract } from './find.contract.ts';
import { idempotencyContract } from './idempotency.contract.ts';
import { includingContract } from './including.contract.ts';
import { listContract } from './list.contract.ts';
import { loadContract } from './load.contract.ts';
import { longTextsContract } from './long_texts.contract.ts';
import { pageRemovalContract } from './page_removal.contract.ts';
import { patchContract } from './patch.contract.ts';
import { removeContract } from './remove.contract.ts';
import { type OpenScanner, scannerContract } from './scanner.contract.ts';
import { similarIdsContract } from './similar_ids.contract.ts';
import { storeContract } from './store.contract.ts';
import { totalsContract } from './totals.contract.ts';
import { wordsContract } from './words.contract.ts';

const CONTRACTS = [
  storeContract,
  patchContract,
  removeContract,
  pageRemovalContract,
  idempotencyContract,
  findContract,
  includingContract,
  listContract,
  totalsContract,
  loadContract,
  scannerContract,
  similarIdsContract,
  longTextsContract,
  wordsContract,
  credentialsContract,
];

/** Runs every contract suite against the store that `open` returns. */
export function runContracts(name: string, open: () => Promise<OpenCredentials & OpenScanner>): void {
  for (const contract of CONTRACTS) contract(name, open);
}

/** The store of an engine, in the form that the contracts take. */
export function storeOf(engine: Engine, execute?: OpenCredentials['execute']): OpenCredentials & OpenScanner {
  return { store: engine.records, credentials: engine.credentials, execute, close: () => engine.close() };
}

/** Opens a database and migrates its schema. */
export async function openStore(address: DatabaseAddress): Promise<OpenCredentials & OpenScanner> {
  const engine = await openEngine(address, 'auto', { version: 'test', clock: systemClock });
  return storeOf(engine, address.engine === 'postgres' ? (sql) => executeAt(address, sql) : undefined);
}

async function executeAt({ hosts, database, user }: PostgresAddress, sql: string): Promise<number> {
  const [host] = hosts;
  const client = new SQL({
    hostname: host?.host,
    port: host?.port,
    database,
    username: user,
    max: 1,
    prepare: false,
  });
  const { count } = await client.unsafe(sql).finally(() => client.close());
  return count;
}
