import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Where Linux lists its sockets and processes. Other systems have no such files. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const LISTENING = '0A';

/**
 * The process that listens on a TCP port, as `name (process N)`. Undefined where the operating system does not tell: on other
 * systems than Linux, and for the processes of other users.
 */
export function portOwner(port: number): string | undefined {
  const sockets = new Set(TABLES.flatMap((table) => listeningSockets(table, port)));
  if (sockets.size === 0) return undefined;
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && hasSocket(name, sockets));
  return pid === undefined ? undefined : `${commandOf(pid)} (process ${pid})`;
}

/** A command that shows the process to a user who may see it. */
export function portOwnerCommand(port: number): string {
  return process.platform === 'linux'
    ? `sudo ss -ltnp 'sport = :${port}'`
    : `sudo lsof -nP -iTCP:${port} -sTCP:LISTEN`;
}

/** The columns of a table are described in proc_pid_net(5): the local address, the state and the inode are 1, 3 and 9. */
function listeningSockets(table: string, port: number): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = attempt(() => readFileSync(table, 'latin1').split('\n')) ?? [];
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === LISTENING && local.endsWith(suffix))
    .map((columns) => `socket:[${columns[9]}]`);
}

function hasSocket(pid: string, sockets: ReadonlySet<string>): boolean {
  const files = attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return files.some((file) => sockets.has(attempt(() => readlinkSync(`/proc/${pid}/fd/${file}`)) ?? ''));
}

/** The name of a program without its arguments, which may contain secrets; of this program also the command. */
function commandOf(pid: string): string {
  const words = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
  const own = words.findIndex((word) => word.endsWith('/src/main.ts'));
  if (own >= 0) return `authrealm ${words[own + 1]}`;
  return (attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8')) ?? 'a program').trim();
}

/** Undefined for a file that this user may not read, or whose process has exited meanwhile. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
