import { join } from 'node:path';
import { systemAmbient } from '../src/ambient.ts';
import { openEngine, openReader, parseDatabase } from '../src/store/open.ts';
import { alikeContract } from './contract/alike.contract.ts';
import { findContract } from './contract/find.contract.ts';
import { listContract } from './contract/list.contract.ts';
import { loadContract } from './contract/load.contract.ts';
import { memoryContract } from './contract/memory.contract.ts';
import { patchContract } from './contract/patch.contract.ts';
import { purgeContract } from './contract/purge.contract.ts';
import { removeContract } from './contract/remove.contract.ts';
import { scannerContract } from './contract/scanner.contract.ts';
import { storeContract } from './contract/store.contract.ts';
import { freshFolder } from './kit.ts';

async function open(url: string) {
  const address = parseDatabase(url);
  if (!address) throw new Error(`no database ${url}`);
  const engine = await openEngine(address, 'auto', { version: 'test', ambient: systemAmbient });
  return { store: engine.records, close: () => engine.close() };
}

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
];

for (const contract of CONTRACTS) {
  contract('sqlite in memory', () => open('sqlite::memory:'));
  contract('sqlite on disk', () => open(`sqlite:${join(freshFolder(), 'contract.db')}`));
}

listContract('sqlite on disk, the long ones beside', async () => {
  const address = { engine: 'sqlite', path: join(freshFolder(), 'contract.db') } as const;
  const engine = await openEngine(address, 'auto', { version: 'test', ambient: systemAmbient });
  const reader = await openReader(address);
  return {
    store: { ...engine.records, list: engine.embedded.listBeside(reader.answer) },
    close() {
      reader.close();
      engine.close();
    },
  };
});
