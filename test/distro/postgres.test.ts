import { type PostgresAddress, parsePostgres } from '../../src/store/open.ts';
import { openStore, runContracts } from '../store/contract/contracts.ts';
import { sharedServer } from '../support/postgres_server.ts';

runContracts('PostgreSQL of Debian', async () => {
  const url = await (await sharedServer()).freshDatabase();
  return openStore(parsePostgres(url) as PostgresAddress);
});
