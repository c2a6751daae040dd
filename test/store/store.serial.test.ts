import { freshDatabase } from '../support/database.ts';
import { runContracts, storeOf } from './contract/contracts.ts';

runContracts('a fresh database', async () => storeOf(await (await freshDatabase()).open()));
