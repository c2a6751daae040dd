import { freshDatabase } from '../support/database.ts';
import { runContracts, storeOf } from './contract/contracts.ts';

runContracts('a database of its own', async () => storeOf(await (await freshDatabase()).open()));
