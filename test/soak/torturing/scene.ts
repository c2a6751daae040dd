import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { buildLibrary } from '../../durability/disk.ts';
import { postgresAt, sqliteAt, type TestDatabase } from '../../support/database.ts';
import { writeMasterKey } from '../../support/fault_injection.ts';
import { type PostgresServer, startServer } from '../../support/postgres_server.ts';
import { runCommand } from '../../support/processes.ts';
import { RELEASES, unpackRelease } from '../../support/release_tree.ts';
import { freePort } from '../../support/service.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp_proxy.ts';
import { type Mortal, startMortal } from '../restartable_service.ts';

export type EngineName = 'sqlite' | 'postgres';

/** A place that a service works in, where everything can be made to go wrong. */
export interface Scene {
  /** As it is seen from outside, past whatever stands in between. */
  readonly database: TestDatabase;
  readonly service: Mortal;
  readonly logFile: string;
  /** Its wall clock, and that of all other programs of the scene, is so far from the real one. */
  setClock: ((milliseconds: number) => void) | undefined;
  readonly disk: Disk | undefined;
  readonly engine: Pick<PostgresServer, 'kill' | 'start'> | undefined;
  readonly network: TcpProxy | undefined;
  /** A program of the release before this one, beside the service: it was there before the schema came that is served. */
  readonly previous: Mortal | undefined;
  end(): Promise<void>;
}

/** The disk that the database lies on. */
interface Disk {
  /** Takes all of its room; undefined where it is not the scene's own. */
  readonly fill: (() => void) | undefined;
  free(): void;
  /** Undefined where there is no compiler. */
  readonly failSyncs: ((isFailing: boolean) => void) | undefined;
  readonly makeReadOnly: ((isReadOnly: boolean) => void) | undefined;
}

/** Callers know the service by one address, whichever program answers: its tokens are good for all of them. */
const FLAGS = ['--base-url', 'http://authrealm.test'];
const PROCESSES = 2;
const ROOM_MB = 512;

export async function setScene(engine: EngineName, folder: string): Promise<Scene> {
  return engine === 'sqlite' ? onSqlite(folder) : onPostgres(folder);
}

/** What stands before programs by LD_PRELOAD, where a compiler is there to make it. */
interface Shims {
  readonly environment: Readonly<Record<string, string>>;
  readonly setClock: Scene['setClock'];
  readonly failSyncs: Disk['failSyncs'];
  readonly makeReadOnly: Disk['makeReadOnly'];
}

function openShims(folder: string): Shims {
  if (!Bun.which('cc'))
    return { environment: {}, setClock: undefined, failSyncs: undefined, makeReadOnly: undefined };
  const [clock, fail, readOnly] = ['clock', 'fail', 'read-only'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(clock, Buffer.alloc(8));
  const control = (path: string) => (isOn: boolean) =>
    isOn ? writeFileSync(path, '') : rmSync(path, { force: true });
  return {
    environment: {
      LD_PRELOAD: `${buildLibrary('sync')}:${buildLibrary('clock')}`,
      FORCE_CLOCK: clock,
      FORCE_FAIL: fail,
      FORCE_READ_ONLY: readOnly,
    },
    setClock(milliseconds) {
      const nanoseconds = Buffer.alloc(8);
      nanoseconds.writeBigInt64LE(BigInt(Math.round(milliseconds)) * 1_000_000n);
      // In place, and at once: programs look at the page itself.
      const file = openSync(clock, 'r+');
      writeSync(file, nanoseconds, 0, nanoseconds.length, 0);
      closeSync(file);
    },
    failSyncs: control(fail),
    makeReadOnly: control(readOnly),
  };
}

async function onSqlite(folder: string): Promise<Scene> {
  const { environment, setClock, failSyncs, makeReadOnly } = openShims(folder);
  const small = await mountedSmall(join(folder, 'disk'));
  const database = sqliteAt(join(small ?? folder, 'torture.db'));
  const logFile = join(folder, 'torture.log');
  const place = { database, logFile, flags: FLAGS, environment, isSupervised: true };
  const [release] = RELEASES.toReversed();
  // One that starts later might know nothing of schemas that serve older programs.
  const previous = release === undefined ? undefined : await startRelease(release, place);
  const service = await startMortal({ ...place, port: await freePort() }, PROCESSES);
  const ballast = join(small ?? folder, 'ballast');
  return {
    database,
    service,
    logFile,
    setClock,
    disk: {
      fill: small === undefined ? undefined : () => fill(ballast),
      free: () => rmSync(ballast, { force: true }),
      failSyncs,
      makeReadOnly,
    },
    engine: undefined,
    network: undefined,
    previous,
    async end() {
      await Promise.all([service, previous].map((each) => each?.end()));
      if (small !== undefined) await runCommand(['umount', '--lazy', small]);
    },
  };
}

async function startRelease(
  release: string,
  place: Omit<Parameters<typeof startMortal>[0], 'port'>,
): Promise<Mortal> {
  const authrealm = join(await unpackRelease(release), 'bin', 'authrealm');
  return startMortal({ ...place, authrealm, port: await freePort() }, 1);
}

async function onPostgres(folder: string): Promise<Scene> {
  const { environment, setClock } = openShims(folder);
  const server = await startServer();
  const direct = await server.freshDatabase();
  const network = await startTcpProxy(server.port);
  const masterKeyFile = writeMasterKey();
  const reached = new URL(direct);
  reached.port = String(network.port);
  const logFile = join(folder, 'torture.log');
  const place = {
    database: postgresAt(reached.href, masterKeyFile),
    logFile,
    flags: FLAGS,
    environment,
    isSupervised: true,
  };
  const service = await startMortal({ ...place, port: await freePort() }, PROCESSES);
  return {
    database: postgresAt(direct, masterKeyFile),
    service,
    logFile,
    setClock,
    disk: undefined,
    engine: server,
    network,
    previous: undefined,
    async end() {
      await service.end();
      network.stop();
    },
  };
}

/** A disk of so much room in memory, where this system lets us have one. */
async function mountedSmall(folder: string): Promise<string | undefined> {
  mkdirSync(folder);
  const mount = ['mount', '-t', 'tmpfs', '-o', `size=${ROOM_MB}m,mode=0700`, 'authrealm-torture', folder];
  const isMounted = await runCommand(mount).then(
    ({ code }) => code === 0,
    () => false,
  );
  return isMounted ? folder : undefined;
}

function fill(ballast: string): void {
  for (let bytes = 64 << 20; bytes >= 4_096; bytes /= 2) {
    const piece = Buffer.alloc(bytes);
    try {
      for (;;) writeFileSync(ballast, piece, { flag: 'a' });
    } catch {
      // No room for so much: half of it may fit.
    }
  }
}
