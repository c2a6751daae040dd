import { systemClock } from '../../../src/platform/clock.ts';
import { type DatabaseAddress, type Engine, openEngine } from '../../../src/store/open.ts';
import { alikeContract } from './alike.contract.ts';
import { findContract } from './find.contract.ts';
import { memoryContract } from './idempotency.contract.ts';
import { listContract } from './list.contract.ts';
import { loadContract } from './load.contract.ts';
import { longestContract } from './longest.contract.ts';
import { patchContract } from './patch.contract.ts';
import { purgeContract } from './purge.contract.ts';
import { removeContract } from './remove.contract.ts';
import { type OpenScanner, scannerContract } from './scanner.contract.ts';
import { storeContract } from './store.contract.ts';
import type { OpenStore } from './store_fixtures.ts';

const CONTRACTS = [
  storeContract,
  patchContract,
  removeContract,
  purgeContract,
  memoryContract,
  findContract,
  listContract,
  loadContract,
  scannerContract,
  alikeContract,
  longestContract,
];

/** Holds what `open` answers to everything that is promised of a store. */
export function holdContracts(name: string, open: () => Promise<OpenStore & OpenScanner>): void {
  for (const contract of CONTRACTS) contract(name, open);
}

/** The store of an engine, as a contract wants it. */
export function storeOf(engine: Engine): OpenStore & OpenScanner {
  return { store: engine.records, close: () => engine.close() };
}

/** Opens a database, and brings its schema up. */
export async function openStore(address: DatabaseAddress): Promise<OpenStore & OpenScanner> {
  return storeOf(await openEngine(address, 'auto', { version: 'test', clock: systemClock }));
}
