import { type PostgresAddress, parsePostgres } from '../../src/ops/store/open.ts';
import { openStore, runContracts } from '../records/contract/contracts.ts';
import { sharedServer } from '../support/postgres_server.ts';

runContracts('PostgreSQL of Debian', async () => {
  const url = await (await sharedServer()).freshDatabase();
  return openStore(parsePostgres(url) as PostgresAddress);
});
