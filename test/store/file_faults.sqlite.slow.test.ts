import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createClient } from '../../src/auth/clients/clients.ts';
import { readSettings } from '../../src/config/parse.ts';
import { parseScopes } from '../../src/domain/principal.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { sqliteAt } from '../support/database.ts';
import { AUTHREALM, clientCreate, HELD_BACK, type Running, runCommand, start } from '../support/processes.ts';
import { freshFolder, oidcPath, type Planted, plant } from '../support/service.ts';

const USERS = 200;
const PAGE_BYTES = 4_096;

/** A database with users, their links and a client, which nobody has open. */
interface Stored {
  readonly path: string;
  readonly planted: readonly Planted[];
  readonly form: Record<string, string>;
}

async function stored(users = 1): Promise<Stored> {
  const made = join(freshFolder(), 'made.db');
  const db = await openDatabase(readSettings({ database: `sqlite:${made}` }, {}), systemClock);
  const first = await plant(db);
  const { realm, oidcProfile, passwordProfile } = first;
  const more = Array.from({ length: users - 1 }, () => plant(db, { realm, oidcProfile, passwordProfile }));
  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const { client, secret } = await createClient(
    db.engine.access,
    'test',
    { scopes, realms: '*' },
    systemClock,
  );
  const form = { grant_type: 'client_credentials', client_id: client.clientId, client_secret: secret };
  const planted = [first, ...(await Promise.all(more))];
  db.engine.close();
  const path = join(freshFolder(), 'faults.db');
  keepApart(made, path);
  return { path, planted, form };
}

/** The engine lets go of a file when its last statement is collected, so nobody has only the copy open. */
function keepApart(made: string, path: string): void {
  const db = new Database(made);
  db.run('pragma wal_checkpoint(truncate)');
  db.close();
  copyFileSync(made, path);
  copyFileSync(`${made}.key`, `${path}.key`);
}

/** A service in a process of its own, with a token for it. */
interface Served {
  readonly running: Running;
  readonly look: (planted: Planted) => Promise<Response>;
  readonly ask: (path: string) => Promise<Response>;
}

async function served({ path, form }: Stored, ...more: string[]): Promise<Served> {
  const running = start([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`, ...more]);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const headers = { Authorization: `Bearer ${token}` };
  const ask = (path: string) => fetch(`${url}${path}`, { headers, keepalive: false });
  return { running, ask, look: (planted) => ask(oidcPath(planted)) };
}

const someone = (given: Stored) => given.planted[0] as Planted;
/** Longer than the access table is trusted, with which every lookup is proven. */
const felt = () => Bun.sleep(1_000);
const STACK = /^\s+at /m;

/** What a process said and did when it ended: never a stack, never a 500. */
async function ended(running: Running): Promise<string> {
  const code = await running.stop();
  expect([code, running.output()]).toEqual([0, expect.not.stringMatching(STACK)]);
  expect(running.output()).not.toContain('"code":"internal"');
  return running.output();
}

/** A write by another process, beside the service. */
async function addClient({ path }: Stored): Promise<void> {
  expect((await clientCreate(sqliteAt(path), 'admin')).code).toBe(0);
}

async function clientsOf({ path }: Stored): Promise<unknown[]> {
  const { stdout } = await runCommand([
    AUTHREALM,
    'client',
    'list',
    '--json',
    '--database',
    `sqlite:${path}`,
  ]);
  return JSON.parse(stdout);
}

function overwrite(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

/** Starts, and expects a refusal in one sentence that leaves the file as it is. */
async function refusedStart(path: string, sentence: RegExp, command: readonly string[] = [AUTHREALM]) {
  const before = existsSync(path) ? readFileSync(path) : undefined;
  const database = ['--database', `sqlite:${path}`];
  const { code, stdout, stderr } = await runCommand([...command, 'serve', '--port', '0', ...database]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^authrealm: .*\n$/);
  expect(stderr).toMatch(sentence);
  const after = existsSync(path) ? readFileSync(path) : undefined;
  expect(before === undefined ? after === undefined : after?.equals(before)).toBe(true);
}

describe('at the start, a sentence for', () => {
  const noise = (bytes: number) => Buffer.alloc(bytes, 0xa5);
  const damages: [string, (path: string) => void, RegExp][] = [
    ['a damaged header', (path) => overwrite(path, noise(100), 0), /no SQLite database.*restore a backup/],
    ['a damaged schema', (path) => overwrite(path, noise(2_000), 100), /damaged.*restore a backup/],
    [
      'a file that was cut',
      (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
      /damaged.*authrealm doctor.*restore a backup/,
    ],
    ['a lost key file', (path) => rmSync(`${path}.key`), /faults\.db\.key is missing.*restore it/],
    [
      "a stranger's key file",
      (path) => writeFileSync(`${path}.key`, Buffer.alloc(32, 7).toString('hex')),
      /master key does not match .*to the right key/,
    ],
    [
      'a newer schema',
      (path) => {
        const db = new Database(path);
        db.run(
          `insert into migration (version, name, applied_at, program_version) values (900, 'far', 0, '9.0.0')`,
        );
        db.close();
      },
      /install authrealm 9\.0\.0 or newer/,
    ],
    [
      'a log without its database',
      (path) => {
        renameSync(path, `${path}.away`);
        writeFileSync(`${path}-wal`, '');
      },
      /-wal belongs to a database that is not at .* put that one back/,
    ],
  ];
  test.each(damages)('%s', async (_name, damage, sentence) => {
    const { path } = await stored();
    damage(path);
    await refusedStart(path, sentence);
  });

  test('a folder in the place of the file, and a folder that is not there', async () => {
    await refusedStart(join(freshFolder(), 'none', 'a.db'), /there is no folder .*none: make it/);
    const folder = freshFolder();
    const database = ['--database', `sqlite:${folder}`];
    const { code, stderr } = await runCommand([AUTHREALM, 'client', 'list', ...database]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^authrealm: the database .* cannot be opened: .*\n$/),
    ]);
  });
});

describe('what may only be read is refused with who needs what', () => {
  test('a file, a folder, and a folder for a new file', async () => {
    const wanted = new RegExp(
      `permission denied.*user ${process.getuid?.()} must .*read and write .*faults\\.db.*modes 0600 and 0700`,
    );
    const { path } = await stored();
    chmodSync(path, 0o400);
    await refusedStart(path, wanted, HELD_BACK);
    chmodSync(path, 0o600);
    chmodSync(dirname(path), 0o500);
    await refusedStart(path, wanted, HELD_BACK);
    await refusedStart(path.replace('faults.db', 'new.faults.db'), wanted, HELD_BACK);
    chmodSync(dirname(path), 0o700);
    const database = ['--database', `sqlite:${path}`];
    const mended = await runCommand([...HELD_BACK, 'client', 'list', ...database]);
    expect([mended.code, mended.stderr]).toEqual([0, '']);
  }, 300_000);
});

describe('under a running service', () => {
  test('a damaged page is 503 with its code in the log; other records are served', async () => {
    const given = await stored(USERS);
    const { running, look } = await served(given);
    const pages = Math.floor(statSync(given.path).size / PAGE_BYTES);
    const garbage = Buffer.alloc(PAGE_BYTES, 0xff);
    // Every other page of the middle, and the last one.
    for (let page = Math.floor(pages / 3); page < (pages * 2) / 3; page += 2)
      overwrite(given.path, garbage, page * PAGE_BYTES);
    overwrite(given.path, garbage, (pages - 1) * PAGE_BYTES);
    const statuses = await Promise.all(given.planted.map(async (each) => (await look(each)).status));
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(await ended(running)).toContain('"code":"unavailable","cause":"SQLITE_CORRUPT');
  }, 300_000);

  const moved = /"code":"unavailable","cause":"DATABASE_FILE_GONE"/;

  test('a database that is moved is 503, a new one is not begun over its log, and it is well when it is back', async () => {
    const given = await stored();
    const { running, look, ask } = await served(given);
    const away = `${given.path}.away`;
    await addClient(given);
    renameSync(given.path, away);
    await felt();
    expect((await look(someone(given))).status).toBe(503);
    const unready = await ask('/readyz');
    expect([unready.status, await unready.json()]).toMatchObject([
      503,
      { dependencies: { database: 'in trouble', access_table: 'in trouble' } },
    ]);
    expect((await ask('/healthz')).status).toBe(200);
    await refusedStart(given.path, /-wal belongs to a database that is not at/);
    renameSync(away, given.path);
    expect((await look(someone(given))).status).toBe(200);
    expect(await ended(running)).toMatch(moved);
    expect(await clientsOf(given)).toHaveLength(2);
    expect(readdirSync(dirname(given.path)).sort()).toEqual([
      'faults.db',
      'faults.db.checkpoints',
      'faults.db.key',
    ]);
  }, 300_000);

  test('a database that is removed is 503, and kept under another name when the service ends', async () => {
    const given = await stored(3);
    const { running, look } = await served(given);
    for (const ending of ['', '-wal', '-shm']) rmSync(given.path + ending);
    await felt();
    expect((await look(someone(given))).status).toBe(503);
    expect(await ended(running)).toMatch(moved);
    const rescued = `${given.path}.rescued`;
    expect(statSync(rescued).mode & 0o777).toBe(0o600);
    renameSync(rescued, given.path);
    const again = await served(given);
    for (const each of given.planted) expect((await again.look(each)).status).toBe(200);
    await ended(again.running);
  }, 300_000);

  test('a log that is removed is 503, and nothing of it is lost', async () => {
    const given = await stored();
    const { running, look } = await served(given);
    await addClient(given);
    rmSync(`${given.path}-wal`);
    await felt();
    expect((await look(someone(given))).status).toBe(503);
    expect(await ended(running)).toMatch(moved);
    expect(await clientsOf(given)).toHaveLength(2);
  }, 300_000);

  test('a database that is replaced is 503 until the service is started again; the one before is kept', async () => {
    const given = await stored();
    const copy = `${given.path}.copy`;
    copyFileSync(given.path, copy);
    const { running, look } = await served(given, '--processes', '2');
    await addClient(given);
    renameSync(copy, given.path);
    await felt();
    for (let attempt = 0; attempt < 6; attempt += 1) expect((await look(someone(given))).status).toBe(503);
    expect(await ended(running)).toMatch(moved);
    // The log of the one must not be found by the other.
    expect(statSync(`${given.path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    const kept = new Database(`${given.path}.rescued`, { readonly: true });
    expect(kept.query('select count(*) as n from client').get()).toEqual({ n: 2 });
    kept.close();
    const again = await served(given);
    expect((await again.look(someone(given))).status).toBe(200);
    await ended(again.running);
  }, 300_000);

  test('one that is cut ends or answers 503, never wrongly, and the next start says what to do', async () => {
    const given = await stored(USERS);
    const { running, look } = await served(given);
    truncateSync(given.path, 2 * PAGE_BYTES);
    for (const each of given.planted.slice(0, 20)) {
      const status = await look(each).then(
        (answer) => answer.status,
        () => 'ended',
      );
      expect([200, 503, 'ended']).toContain(status);
    }
    // The engine reads through a mapping of the file, and the system ends whoever reads where a file no longer is.
    running.process.kill('SIGTERM');
    await running.process.exited;
    await refusedStart(given.path, /damaged.*restore a backup/);
  }, 300_000);
});
