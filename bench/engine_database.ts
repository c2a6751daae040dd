import { join } from 'node:path';
import { startCluster } from '../test/support/citus_cluster.ts';
import { endServers, startServer } from '../test/support/postgres_server.ts';
import { writeKeyFile } from './key_file.ts';

const SERVER_SETTINGS = { max_connections: '400', max_wal_size: '4GB' };

/** Creates the database of an engine; resolves to its URL. */
const CREATE = {
  sqlite: async (folder: string) => `sqlite:${join(folder, 'bench.db')}`,
  postgres: async () => (await startServer(SERVER_SETTINGS)).freshDatabase(),
  /** Needs AUTHREALM_TEST_CITUS, the folder with a build of Citus. */
  citus: async () => (await startCluster({ settings: SERVER_SETTINGS })).freshDatabase(),
};

/** A new database, for one bench. */
export interface EngineDatabase {
  /** The flags that name it. */
  readonly flags: readonly string[];
  stop(): Promise<void>;
}

/** Starts the servers that the engine needs. `folder` takes the files of SQLite, and the master key of the other engines. */
export async function openEngineDatabase(engine: string, folder: string): Promise<EngineDatabase> {
  if (!isEngine(engine))
    throw new Error(`no engine "${engine}": use one of ${Object.keys(CREATE).join(', ')}`);
  const database = await CREATE[engine](folder);
  // The programs reject variables that begin like theirs.
  delete process.env.AUTHREALM_TEST_CITUS;
  const key = engine === 'sqlite' ? [] : ['--master-key-file', writeKeyFile(folder)];
  return { flags: ['--database', database, ...key], stop: endServers };
}

const isEngine = (name: string): name is keyof typeof CREATE => name in CREATE;
