import { freshDatabase } from '../support/database.ts';
import { holdContracts, storeOf } from './contract/contracts.ts';

holdContracts('a database of its own', async () => storeOf(await (await freshDatabase()).open()));
