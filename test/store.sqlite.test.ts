import { join } from 'node:path';
import { systemAmbient } from '../src/ambient.ts';
import { openEngine, openReader } from '../src/store/open.ts';
import { holdContracts, openStore } from './contract/contracts.ts';
import { listContract } from './contract/list.contract.ts';
import { freshFolder } from './folder.ts';

holdContracts('sqlite in memory', () => openStore({ engine: 'sqlite', path: ':memory:' }));

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
