import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readableStreamToText } from 'bun';

/** Where daemons of the tests listen. */
export const HOST = '127.0.0.1';
const START_MS_MAX = 120_000;

/** Both PostgreSQL and PgBouncer refuse to run as root. These are the numbers of nobody. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

/** A program of an unprivileged user that ends with the test process. */
export interface Daemon {
  readonly pid: number;
  log(): string;
  /** Resolves once the condition holds; rejects when the program exits or START_MS_MAX passes before. */
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
  let hasExited = false;
  // Children inherit standard output, so that it ends when the last of them exits.
  const exited = Promise.all([child.exited, readableStreamToText(child.stdout)]).then(() => {
    rmSync(pidPath, { force: true });
    hasExited = true;
  });
  const daemon: Daemon = {
    pid: child.pid,
    log: () => readFileSync(logPath, 'utf8'),
    async until(isReady) {
      const start = performance.now();
      while (!(await isReady())) {
        const isLate = performance.now() - start > START_MS_MAX;
        if (hasExited || isLate) throw new Error(`${command[0]} does not start: ${daemon.log()}`);
        await Bun.sleep(5);
      }
    },
    async end(signal) {
      child.kill(signal);
      child.kill('SIGCONT');
      await exited;
    },
    async kill() {
      // A stopped process does not notice the death of a child and starts no other.
      child.kill('SIGSTOP');
      const children = hasExited ? [] : childrenOf(child.pid);
      child.kill('SIGKILL');
      for (const pid of children) killIfThere(pid);
      await exited;
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

/** Runs a program of the unprivileged user to its end. Throws its standard error where it fails. */
export async function runAsDaemon(command: readonly string[], folder: string, input = ''): Promise<void> {
  const child = Bun.spawn([...command], {
    ...UNPRIVILEGED,
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    stdio: [new Blob([input]), 'ignore', 'pipe'],
  });
  const [errors, code] = await Promise.all([readableStreamToText(child.stderr), child.exited]);
  if (code !== 0) throw new Error(`${command.join(' ')}: ${errors}`);
}

/**
 * A free port below the ephemeral range, so that it is still free at the next start. On Linux no test process gets it again while this
 * one runs.
 */
export function findPort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    try {
      if (process.platform === 'linux') claimPort(port);
      Bun.listen({ hostname: HOST, port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      // In use or claimed: try another one.
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** So that the sockets are not collected as garbage. */
const claims: object[] = [];

/**
 * Claims a port until this process ends, also while nothing listens there. Throws if a test process has claimed it. The claim is
 * a socket in the abstract namespace of Linux.
 */
function claimPort(port: number): void {
  const claim = Bun.listen({ unix: `\0authrealm-test-port-${port}`, socket: { data() {} } });
  claim.unref();
  claims.push(claim);
}

/** Folders of the daemons of a test process; the unprivileged user cannot read RUN_FOLDER. */
interface DaemonFolders {
  /** For programs: the memory file system may forbid executables. */
  readonly disk: string;
  /** For data: ten times as fast. The same folder as `disk` where memory is short. */
  readonly memory: string;
  readonly watchdog: Bun.Subprocess<'pipe', 'ignore', 'ignore'>;
}

const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;

/** Waits for the end of the test process, stops running daemons and removes both folders. */
const WATCHDOG = `trap '' HUP INT TERM
read -r _
for file in "$1"/*/*.pid; do
  [ -f "$file" ] && read -r pid <"$file" && kill -QUIT "$pid" && kill -CONT "$pid"
done
tries=0
while ls "$1"/*/data/postmaster.pid && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
rm -rf "$0" "$1"`;

let home: DaemonFolders | undefined;
let folders = 0;

function openDaemonFolders(): DaemonFolders {
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
export function freshDaemonFolder(kind: 'disk' | 'memory' = 'memory'): string {
  folders += 1;
  const folder = join(openDaemonFolders()[kind], String(folders));
  mkdirSync(folder);
  if (UNPRIVILEGED) chownSync(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  return folder;
}

/** Stops all daemons and removes their files. */
export async function endDaemons(): Promise<void> {
  await Promise.all(daemons.map((daemon) => daemon.end('SIGQUIT')));
  home?.watchdog.stdin.end();
  await home?.watchdog.exited;
  daemons.length = 0;
  home = undefined;
}
