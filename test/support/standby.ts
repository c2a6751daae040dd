import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { type Daemon, findPort, freshDaemonFolder, HOST, runAsDaemon, startDaemon } from './daemons.ts';
import { type PostgresServer, startServer } from './postgres_server.ts';

/** A primary, and a standby that has received whatever the primary acknowledges. */
export interface StandbyPair {
  readonly primary: PostgresServer;
  readonly standbyPort: number;
  /** Makes a primary of the standby. Resolves when it takes writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** What a client may do without a password: more than the servers of other tests allow. */
const AUTHENTICATION = `host all,replication postgres ${HOST}/32 trust\n`;
const PATIENCE_MS = 60_000;

/** Both durable as PostgreSQL is by itself, and synchronous: a commit waits until the standby has it on disk. */
export async function startStandbyPair(): Promise<StandbyPair> {
  const folder = freshDaemonFolder();
  const authentication = join(folder, 'hba.conf');
  writeFileSync(authentication, AUTHENTICATION, { mode: 0o644 });
  const primary = await startServer({ hba_file: authentication });
  const [{ data = '', programs = '' }] = await ask(
    primary.url(),
    `select current_setting('data_directory') as data, (select setting from pg_config where name = 'BINDIR') as programs`,
  );
  // Copied while nobody writes, it needs no backup protocol.
  await primary.stop();
  const copy = join(folder, 'data');
  await runAsDaemon(['cp', '-a', data, copy], folder);
  await runAsDaemon(['touch', join(copy, 'standby.signal')], folder);
  rmSync(join(copy, 'postmaster.pid'), { force: true });
  await primary.start();
  const standbyPort = findPort();
  const settings = {
    listen_addresses: HOST,
    unix_socket_directories: '',
    dynamic_shared_memory_type: 'mmap',
    hba_file: authentication,
    // As soon as the primary is there again, commits go on.
    wal_retrieve_retry_interval: '50ms',
    primary_conninfo: `host=${HOST} port=${primary.port} user=postgres`,
  };
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const standby: Daemon = startDaemon(
    [join(programs, 'postgres'), '-D', copy, '-p', String(standbyPort), ...words],
    folder,
  );
  await standby.until(() => pidFile(copy).split('\n')[7]?.trim() === 'ready');
  await ask(primary.url(), `alter system set synchronous_standby_names = '*'`);
  await ask(primary.url(), 'select pg_reload_conf()');
  await until(primary.url(), `select 1 from pg_stat_replication where sync_state = 'sync'`);
  const standbyUrl = `postgres://postgres@${HOST}:${standbyPort}/postgres`;
  return {
    primary,
    standbyPort,
    async promote() {
      await ask(standbyUrl, 'select pg_promote()');
      // It would wait for a standby of its own.
      await ask(standbyUrl, `alter system set synchronous_standby_names = ''`);
      await ask(standbyUrl, 'select pg_reload_conf()');
      await until(standbyUrl, 'select 1 where not pg_is_in_recovery()');
    },
    async stop() {
      await standby.end('SIGQUIT');
      await primary.stop('immediate');
    },
  };
}

function pidFile(data: string): string {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8');
  } catch {
    return '';
  }
}

type Rows = [Record<string, string>, ...Record<string, string>[]];

async function ask(url: string, statement: string): Promise<Rows> {
  const sql = new SQL(url, { max: 1 });
  return sql.unsafe(statement).finally(() => sql.close());
}

async function until(url: string, statement: string): Promise<void> {
  const start = performance.now();
  while ((await ask(url, statement)).length === 0) {
    if (performance.now() - start > PATIENCE_MS) throw new Error(`never true: ${statement}`);
    await Bun.sleep(20);
  }
}
