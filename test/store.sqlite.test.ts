import { join } from 'node:path';
import { systemAmbient } from '../src/ambient.ts';
import { openEngine, parseDatabase } from '../src/store/open.ts';
import { alikeContract } from './contract/alike.contract.ts';
import { scannerContract } from './contract/scanner.contract.ts';
import { storeContract } from './contract/store.contract.ts';
import { freshFolder } from './kit.ts';

async function open(url: string) {
  const address = parseDatabase(url);
  if (!address) throw new Error(`no database ${url}`);
  const engine = await openEngine(address, 'auto', { version: 'test', ambient: systemAmbient });
  return { store: engine.records, close: () => engine.close() };
}

for (const contract of [storeContract, scannerContract, alikeContract]) {
  contract('sqlite in memory', () => open('sqlite::memory:'));
  contract('sqlite on disk', () => open(`sqlite:${join(freshFolder(), 'contract.db')}`));
}
