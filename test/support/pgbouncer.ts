import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPort, freshDaemonFolder, HOST, startDaemon } from './daemons.ts';
import { atEnd } from './ending.ts';
import type { SharedServer } from './postgres_server.ts';

/** Debian's PgBouncer in front of a server, in transaction pooling mode. */
export interface PgBouncer {
  readonly host: typeof HOST;
  readonly port: number;
  /** The URL of a database through PgBouncer, for the role `postgres`, which needs no password. */
  url(database?: string): string;
  log(): string;
  stop(): Promise<void>;
}

const PROGRAM = '/usr/sbin/pgbouncer';

/** `settings` are those of the section [pgbouncer]. Throws where the program is not installed. */
export async function startPgBouncer(
  server: SharedServer,
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not installed: run apt-get install -y pgbouncer`);
  const folder = freshDaemonFolder();
  const port = findPort();
  const users = join(folder, 'users.txt');
  writeFileSync(users, '"postgres" ""\n');
  const section = {
    listen_addr: HOST,
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: 'transaction',
    ...settings,
  };
  const path = join(folder, 'pgbouncer.ini');
  const databases = ['[databases]', `* = host=${server.host} port=${server.port}`];
  const lines = Object.entries(section).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(path, `${[...databases, '[pgbouncer]', ...lines].join('\n')}\n`);
  const daemon = startDaemon([PROGRAM, path], folder);
  await daemon.until(() => isListening(port));
  atEnd(() => daemon.end('SIGTERM'));
  return {
    host: HOST,
    port,
    url: (database = 'postgres') => `postgres://postgres@${HOST}:${port}/${database}`,
    log: () => daemon.log(),
    stop: () => daemon.end('SIGTERM'),
  };
}

async function isListening(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: HOST, port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}
