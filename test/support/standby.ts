import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { freshDaemonFolder, HOST, runAsDaemon } from './daemons.ts';
import { type PostgresServer, ROLES, startServer } from './postgres_server.ts';

/** A primary and a synchronous standby. */
export interface StandbyPair {
  readonly primary: PostgresServer;
  readonly standbyPort: number;
  /** Promotes the standby. Resolves when it accepts writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

type Settings = Readonly<Record<string, string>>;

const WAIT_MS_MAX = 60_000;

/** Both with default durability: a commit waits until the standby has flushed it to disk. */
export async function startStandbyPair(): Promise<StandbyPair> {
  const settings = replicationSettings();
  const primary = await startServer(settings);
  const standby = await startStandby(primary, settings);
  await query(primary.url(), `alter system set synchronous_standby_names = '*'`);
  await query(primary.url(), 'select pg_reload_conf()');
  await waitUntilSynchronous(primary);
  return {
    primary,
    standbyPort: standby.port,
    promote: () => promote(standby),
    async stop() {
      await standby.stop('immediate');
      await primary.stop('immediate');
    },
  };
}

/** Settings of a primary and of its standbys: they allow replication without a password, which other test servers do not. */
export function replicationSettings(): Settings {
  const path = join(freshDaemonFolder(), 'hba.conf');
  writeFileSync(path, `host all,replication postgres,${ROLES.join()} ${HOST}/32 trust\n`, { mode: 0o644 });
  // Commits continue soon after the primary is back.
  return { hba_file: path, wal_retrieve_retry_interval: '50ms', wal_keep_size: '128MB' };
}

/** Starts a standby of a running server, from a copy of its data. `settings` are those of the server. */
export async function startStandby(primary: PostgresServer, settings: Settings): Promise<PostgresServer> {
  const folder = freshDaemonFolder();
  await copyRunning(primary, folder);
  const connection = `host=${HOST} port=${primary.port} user=postgres`;
  return startServer({ ...settings, primary_conninfo: connection }, folder);
}

/** Resolves once commits of a server wait for its standby. */
export function waitUntilSynchronous(primary: PostgresServer): Promise<void> {
  return waitForRows(primary.url(), `select 1 from pg_stat_replication where sync_state = 'sync'`);
}

/** Files may change and vanish while they are copied, for which tar exits with 1: the write-ahead log restores them. */
const COPY = `tar -C "$0" --exclude='./pg_wal/*' --exclude='./pg_replslot/*' --exclude=./postmaster.pid -cf "$1.tar" . 2>"$1.err"
[ $? -le 1 ] || { cat "$1.err" >&2; exit 1; }
mkdir -m 700 "$1" && tar -C "$1" -xf "$1.tar" && rm "$1.tar" && touch "$1/standby.signal"`;

/** Copies the data of a running server to a folder as pg_basebackup does, which the npm package lacks. */
async function copyRunning(server: PostgresServer, folder: string): Promise<void> {
  const sql = new SQL(server.url(), { max: 1 });
  try {
    const [{ data }] = await sql.unsafe(`select current_setting('data_directory') as data`);
    await sql.unsafe(`select pg_backup_start('standby', true)`);
    const copy = join(folder, 'data');
    await runAsDaemon(['sh', '-c', COPY, data, copy], folder);
    const [{ label }] = await sql.unsafe('select labelfile as label from pg_backup_stop()');
    await runAsDaemon(['sh', '-c', 'cat >"$0"', join(copy, 'backup_label')], folder, label);
  } finally {
    await sql.close();
  }
}

async function promote(standby: PostgresServer): Promise<void> {
  await query(standby.url(), 'select pg_promote()');
  // Otherwise commits would wait for another standby.
  await query(standby.url(), `alter system set synchronous_standby_names = ''`);
  await query(standby.url(), 'select pg_reload_conf()');
  await waitForRows(standby.url(), 'select 1 where not pg_is_in_recovery()');
}

type Rows = readonly Record<string, string>[];

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
