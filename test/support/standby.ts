import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { type Daemon, findPort, freshDaemonFolder, HOST, runAsDaemon, startDaemon } from './daemons.ts';
import { type PostgresServer, startServer } from './postgres_server.ts';

/** A primary and a synchronous standby. */
export interface StandbyPair {
  readonly primary: PostgresServer;
  readonly standbyPort: number;
  /** Promotes the standby. Resolves when it accepts writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** Allows replication without a password, which other test servers do not. */
const AUTHENTICATION = `host all,replication postgres ${HOST}/32 trust\n`;
const WAIT_MS_MAX = 60_000;

/** Both with default durability: a commit waits until the standby has flushed it to disk. */
export async function startStandbyPair(): Promise<StandbyPair> {
  const folder = freshDaemonFolder();
  const authentication = join(folder, 'hba.conf');
  writeFileSync(authentication, AUTHENTICATION, { mode: 0o644 });
  const primary = await startServer({ hba_file: authentication });
  const [{ data = '', programs = '' }] = await query(
    primary.url(),
    `select current_setting('data_directory') as data, (select setting from pg_config where name = 'BINDIR') as programs`,
  );
  // A copy of a stopped server needs no backup protocol.
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
    // Commits continue soon after the primary is back.
    wal_retrieve_retry_interval: '50ms',
    primary_conninfo: `host=${HOST} port=${primary.port} user=postgres`,
  };
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const standby: Daemon = startDaemon(
    [join(programs, 'postgres'), '-D', copy, '-p', String(standbyPort), ...words],
    folder,
  );
  await standby.until(() => pidFile(copy).split('\n')[7]?.trim() === 'ready');
  await query(primary.url(), `alter system set synchronous_standby_names = '*'`);
  await query(primary.url(), 'select pg_reload_conf()');
  await waitForRows(primary.url(), `select 1 from pg_stat_replication where sync_state = 'sync'`);
  const standbyUrl = `postgres://postgres@${HOST}:${standbyPort}/postgres`;
  return {
    primary,
    standbyPort,
    async promote() {
      await query(standbyUrl, 'select pg_promote()');
      // Otherwise commits would wait for another standby.
      await query(standbyUrl, `alter system set synchronous_standby_names = ''`);
      await query(standbyUrl, 'select pg_reload_conf()');
      await waitForRows(standbyUrl, 'select 1 where not pg_is_in_recovery()');
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

async function query(url: string, statement: string): Promise<Rows> {
  const sql = new SQL(url, { max: 1 });
  return sql.unsafe(statement).finally(() => sql.close());
}

async function waitForRows(url: string, statement: string): Promise<void> {
  const start = performance.now();
  while ((await query(url, statement)).length === 0) {
    if (performance.now() - start > WAIT_MS_MAX) throw new Error(`no rows in time: ${statement}`);
    await Bun.sleep(20);
  }
}
