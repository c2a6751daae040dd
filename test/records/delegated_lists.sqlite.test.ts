import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Embedded } from '../../src/ops/store/engine.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { openReader } from '../../src/records/store/sqlite/reader.ts';
import { freshFolder } from '../support/folder.ts';
import { listContract } from './contract/list.contract.ts';

listContract('sqlite on disk, long lists in a reader', async () => {
  const path = join(freshFolder(), 'contract.db');
  const engine = await openEngine({ engine: 'sqlite', path }, 'auto', {
    version: 'test',
    clock: systemClock,
  });
  const reader = await openReader(path);
  return {
    store: { ...engine.records, list: (engine.embedded as Embedded).listDelegating(reader.answer) },
    close() {
      reader.close();
      engine.close();
    },
  };
});
