import { holdContracts, storeOf } from './contract/contracts.ts';
import { freshDatabase } from './database.ts';

holdContracts('a database of its own', async () => storeOf(await (await freshDatabase()).open()));
