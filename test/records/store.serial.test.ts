import { freshDatabase } from '../support/database.ts';
import { runContracts, storeOf } from './contract/contracts.ts';

runContracts('a fresh database', async () => {
  const { open, tamper } = await freshDatabase();
  return storeOf(await open(), tamper);
});
