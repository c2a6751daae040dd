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
import { createClient } from '../../src/access/clients/clients.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { parseScopes } from '../../src/model/principal.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import {
  AUTHREALM,
  AUTHREALM_UNPRIVILEGED,
  type RunningCommand,
  runCommand,
  startCommand,
} from '../support/processes.ts';
import { createFixture, type Fixture, freshFolder, oidcPath } from '../support/service.ts';

const USERS = 200;
const PAGE_BYTES = 4_096;

/** A closed database with users, their links and a client. */
interface StoredDatabase {
  readonly path: string;
  readonly users: readonly Fixture[];
  readonly form: Record<string, string>;
}

async function createDatabase(userCount = 1): Promise<StoredDatabase> {
  const original = join(freshFolder(), 'original.db');
  const db = await openDatabase(readSettings({ database: `sqlite:${original}` }, {}), systemClock);
  const first = await createFixture(db);
  const { realm, oidcProfile, passwordProfile } = first;
  const more = Array.from({ length: userCount - 1 }, () =>
    createFixture(db, { realm, oidcProfile, passwordProfile }),
  );
  const scopes = parseScopes('profile-infos:read') ?? new Set<string>();
  const { client, secret } = await createClient(
    db.engine.access,
    'test',
    { scopes, realms: '*' },
    systemClock,
  );
  const form = { grant_type: 'client_credentials', client_id: client.clientId, client_secret: secret };
  const users = [first, ...(await Promise.all(more))];
  db.engine.close();
  const path = join(freshFolder(), 'faults.db');
  copyDatabase(original, path);
  return { path, users, form };
}

/** The engine closes a file only when its last statement is collected, so the tests use a copy. */
function copyDatabase(original: string, path: string): void {
  const db = new Database(original);
  db.run('pragma wal_checkpoint(truncate)');
  db.close();
  copyFileSync(original, path);
  copyFileSync(`${original}.key`, `${path}.key`);
}

/** A service in a separate process, with requests that carry a token. */
interface RunningService {
  readonly running: RunningCommand;
  readonly lookUp: (user: Fixture) => Promise<Response>;
  readonly get: (path: string) => Promise<Response>;
}

async function serveDatabase({ path, form }: StoredDatabase, ...more: string[]): Promise<RunningService> {
  const running = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`, ...more]);
  const url = (await running.line(/^listening on /)).slice('listening on '.length);
  const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const headers = { Authorization: `Bearer ${token}` };
  const get = (path: string) => fetch(`${url}${path}`, { headers, keepalive: false });
  return { running, get, lookUp: (user) => get(oidcPath(user)) };
}

const firstUser = (target: StoredDatabase) => target.users[0] as Fixture;
/** Waits longer than the maximum age of the access table: the service reads the database again. */
const waitForFileCheck = () => Bun.sleep(1_000);
const STACK = /^\s+at /m;

/** Stops the process and returns its output, which must have no stack trace and no internal fault. */
async function stopCleanly(running: RunningCommand): Promise<string> {
  const code = await running.stop();
  expect([code, running.output()]).toEqual([0, expect.not.stringMatching(STACK)]);
  expect(running.output()).not.toContain('"code":"internal"');
  return running.output();
}

/** Runs a command about clients in a process of its own: a connection of this process would keep the log files. */
async function runClient({ path }: StoredDatabase, ...words: string[]): Promise<string> {
  const { code, stdout } = await runCommand([AUTHREALM, 'client', ...words, '--database', `sqlite:${path}`]);
  expect(code).toBe(0);
  return stdout;
}

/** A write while the service runs. */
async function addClient(target: StoredDatabase): Promise<void> {
  await runClient(target, 'create', '--name', 'n', '--scope', 'admin');
}

async function clientsOf(target: StoredDatabase): Promise<unknown[]> {
  return JSON.parse(await runClient(target, 'list', '--json'));
}

function overwrite(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

/** Expects a start to be refused with one sentence, and to leave the file unchanged. */
async function expectRefusedStart(path: string, sentence: RegExp, command: readonly string[] = [AUTHREALM]) {
  const before = existsSync(path) ? readFileSync(path) : undefined;
  const database = ['--database', `sqlite:${path}`];
  const { code, stdout, stderr } = await runCommand([...command, 'serve', '--port', '0', ...database]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^authrealm: .*\n$/);
  expect(stderr).toMatch(sentence);
  const after = existsSync(path) ? readFileSync(path) : undefined;
  expect(before === undefined ? after === undefined : after?.equals(before)).toBe(true);
}

describe('a start on a damaged or foreign database', () => {
  const garbage = (bytes: number) => Buffer.alloc(bytes, 0xa5);
  const damages: [string, (path: string) => void, RegExp][] = [
    [
      'a damaged header',
      (path) => overwrite(path, garbage(100), 0),
      /not a SQLite database.*restore a backup/,
    ],
    ['a damaged schema', (path) => overwrite(path, garbage(2_000), 100), /damaged.*restore a backup/],
    [
      'a truncated file',
      (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
      /damaged.*authrealm doctor.*restore a backup/,
    ],
    ['a missing key file', (path) => rmSync(`${path}.key`), /faults\.db\.key is missing.*restore it/],
    [
      "another installation's key file",
      (path) => writeFileSync(`${path}.key`, Buffer.alloc(32, 7).toString('hex')),
      /master key does not match .*to the right key/,
    ],
    [
      'a write-ahead log without its database',
      (path) => {
        renameSync(path, `${path}.away`);
        writeFileSync(`${path}-wal`, '');
      },
      /-wal belongs to a database that is no longer at .* put that database back/,
    ],
  ];
  test.each(damages)('a start with %s is refused with one sentence', async (_name, damage, sentence) => {
    const { path } = await createDatabase();
    damage(path);
    await expectRefusedStart(path, sentence);
  });
});

describe('a start without write permission', () => {
  test('a start on a read-only file or folder is refused, naming the user and the needed modes', async () => {
    const sentence = new RegExp(
      `(permission denied|unable to open).*user ${process.getuid?.()} must .*read and write .*faults\\.db.*modes 0600 and 0700`,
    );
    const { path } = await createDatabase();
    chmodSync(path, 0o400);
    await expectRefusedStart(path, sentence, AUTHREALM_UNPRIVILEGED);
    chmodSync(path, 0o600);
    chmodSync(dirname(path), 0o500);
    await expectRefusedStart(path, sentence, AUTHREALM_UNPRIVILEGED);
    const noRights = /user \d+ may not create files in .*: change .*, or pass another path with --database/;
    await expectRefusedStart(path.replace('faults.db', 'new.db'), noRights, AUTHREALM_UNPRIVILEGED);
    // A folder of another user.
    chmodSync(dirname(path), 0o000);
    await expectRefusedStart(path, noRights, AUTHREALM_UNPRIVILEGED);
    chmodSync(dirname(path), 0o700);
    const database = ['--database', `sqlite:${path}`];
    const list = await runCommand([...AUTHREALM_UNPRIVILEGED, 'client', 'list', ...database]);
    expect([list.code, list.stderr]).toEqual([0, '']);
  }, 300_000);
});

/** The numbers, from 1, of the pages with the rows of links to providers. */
function pagesOfLinks(path: string): readonly number[] {
  using db = new Database(path, { readonly: true });
  const leaves = "select pageno from dbstat where name = 'oidc_profile_info' and pagetype = 'leaf'";
  return db
    .query<{ pageno: number }, []>(leaves)
    .all()
    .map(({ pageno }) => pageno);
}

describe('file faults under a running service', () => {
  test('a record on a damaged page is 503 with the SQLite code in the log; other records are served', async () => {
    const target = await createDatabase(USERS);
    const { running, lookUp } = await serveDatabase(target);
    const garbage = Buffer.alloc(PAGE_BYTES, 0xff);
    // Every other page of links. Pages of other tables may be read by all lookups.
    for (const [at, page] of pagesOfLinks(target.path).entries())
      if (at % 2 === 0) overwrite(target.path, garbage, (page - 1) * PAGE_BYTES);
    const statuses = await Promise.all(target.users.map(async (each) => (await lookUp(each)).status));
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(await stopCleanly(running)).toContain('"code":"unavailable","cause":"SQLITE_CORRUPT');
  }, 300_000);

  const FILE_GONE = /"code":"unavailable","cause":"DATABASE_FILE_GONE"/;

  test('a moved database is 503 until it is back; no new database is created over its log', async () => {
    const target = await createDatabase();
    const { running, lookUp, get } = await serveDatabase(target);
    const away = `${target.path}.away`;
    await addClient(target);
    renameSync(target.path, away);
    await waitForFileCheck();
    expect((await lookUp(firstUser(target))).status).toBe(503);
    const unready = await get('/readyz');
    expect([unready.status, await unready.json()]).toMatchObject([
      503,
      { dependencies: { database: 'in trouble', access_table: 'in trouble' } },
    ]);
    expect((await get('/healthz')).status).toBe(200);
    await expectRefusedStart(target.path, /-wal belongs to a database that is no longer at/);
    renameSync(away, target.path);
    expect((await lookUp(firstUser(target))).status).toBe(200);
    expect(await stopCleanly(running)).toMatch(FILE_GONE);
    expect(await clientsOf(target)).toHaveLength(2);
    expect(readdirSync(dirname(target.path)).sort()).toEqual([
      'faults.db',
      'faults.db.checkpoints',
      'faults.db.key',
    ]);
  }, 300_000);

  test('a removed database is 503, and is saved under another name when the service stops', async () => {
    const target = await createDatabase(3);
    const { running, lookUp } = await serveDatabase(target);
    for (const ending of ['', '-wal', '-shm']) rmSync(target.path + ending);
    await waitForFileCheck();
    expect((await lookUp(firstUser(target))).status).toBe(503);
    expect(await stopCleanly(running)).toMatch(FILE_GONE);
    const rescued = `${target.path}.rescued`;
    expect(statSync(rescued).mode & 0o777).toBe(0o600);
    renameSync(rescued, target.path);
    const again = await serveDatabase(target);
    for (const each of target.users) expect((await again.lookUp(each)).status).toBe(200);
    await stopCleanly(again.running);
  }, 300_000);

  test('a removed write-ahead log is 503, and no commit is lost', async () => {
    const target = await createDatabase();
    const { running, lookUp } = await serveDatabase(target);
    await addClient(target);
    rmSync(`${target.path}-wal`);
    await waitForFileCheck();
    expect((await lookUp(firstUser(target))).status).toBe(503);
    expect(await stopCleanly(running)).toMatch(FILE_GONE);
    expect(await clientsOf(target)).toHaveLength(2);
  }, 300_000);

  test('a replaced database is 503 until the service restarts; the former one is saved', async () => {
    const target = await createDatabase();
    const copy = `${target.path}.copy`;
    copyFileSync(target.path, copy);
    const { running, lookUp } = await serveDatabase(target, '--processes', '2');
    await addClient(target);
    renameSync(copy, target.path);
    await waitForFileCheck();
    for (let attempt = 0; attempt < 6; attempt += 1)
      expect((await lookUp(firstUser(target))).status).toBe(503);
    expect(await stopCleanly(running)).toMatch(FILE_GONE);
    // The new database must not find the log of the former one.
    expect(statSync(`${target.path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    const rescuedDb = new Database(`${target.path}.rescued`, { readonly: true });
    expect(rescuedDb.query('select count(*) as n from client').get()).toEqual({ n: 2 });
    rescuedDb.close();
    const again = await serveDatabase(target);
    expect((await again.lookUp(firstUser(target))).status).toBe(200);
    await stopCleanly(again.running);
  }, 300_000);

  test('a truncated database is answered with 503 or a crash, never wrongly; the next start says what to do', async () => {
    const target = await createDatabase(USERS);
    const { running, lookUp } = await serveDatabase(target);
    truncateSync(target.path, 2 * PAGE_BYTES);
    for (const each of target.users.slice(0, 20)) {
      const status = await lookUp(each).then(
        (answer) => answer.status,
        () => 'ended',
      );
      expect([200, 503, 'ended']).toContain(status);
    }
    // The engine maps the file into memory: a read beyond the end of the file kills the process (SIGBUS).
    running.process.kill('SIGTERM');
    await running.process.exited;
    await expectRefusedStart(target.path, /damaged.*restore a backup/);
  }, 300_000);
});
