import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SCOPE_WORDS } from '../../src/model/principal.ts';
import { findPort } from '../support/daemons.ts';
import { AUTHREALM_UNPRIVILEGED, runAuthrealm, runCommand } from '../support/processes.ts';
import { createFixture, freshFolder, startService } from '../support/service.ts';

/** Mistakes at the command line, each with the whole of what standard error says: the next step is in every sentence. */

const ID = '01234567-89ab-cdef-0123-456789abcdef';
const folder = freshFolder();
const service = await startService();
const tls = { cert: file('localhost.cert.pem'), key: file('localhost.key.pem') };
const secure = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response() });
const closedPort = findPort();

function file(name: string) {
  return Bun.file(join(import.meta.dir, '../fixtures', name));
}

const HTTP = service.url;
const HTTPS = HTTP.replace('http:', 'https:');
const PORT = new URL(HTTP).port;
const CLOSED = `http://127.0.0.1:${closedPort}`;
const TLS_PORT = `127.0.0.1:${secure.port}`;

const GET = `get realm ${ID} --client-id c --client-secret-file secret --url`;
const SEE = (command: string) => `; see "authrealm ${command} --help"`;
const NONE = 'it does not exist: check the path';
const NO_DATABASE =
  'the database none.db is missing or empty: pass the one of the service with --database, or create it with "authrealm init" or "authrealm serve"';
const IDS = 'an ID is 8-4-4-4-12 in hex, as "authrealm list" and "authrealm export" show it';
const USER = process.getuid?.();

/** A command line, the exit code, and the lines of standard error without "authrealm: ". */
type Mistake = readonly [line: string, code: number, ...sentences: string[]];

const MISTAKES: readonly Mistake[] = [
  ['sevre', 2, `unknown command 'sevre' (Did you mean serve?); see "authrealm --help"`],
  ['client creat', 2, `unknown command 'creat' (Did you mean create?)${SEE('client')}`],
  ['serve --prot 8080', 2, `unknown option '--prot' (Did you mean --port?)${SEE('serve')}`],
  ['serve --port', 2, `option '--port <PORT>' argument missing${SEE('serve')}`],
  ['serve --port http', 2, '--port must be a number from 0 to 65535'],
  [
    'serve --metrics 9464',
    2,
    '--metrics must be an address and a port, such as 127.0.0.1:9464 or [::1]:9464',
  ],
  [
    'doctor --database mysql://u@h/d',
    2,
    '--database must be a file such as ./authrealm.db, sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE',
  ],
  ['doctor extra', 2, `too many arguments for 'doctor'. Expected 0 arguments but got 1${SEE('doctor')}`],
  ['import', 2, `missing required argument 'file'${SEE('import')}`],
  [
    'import a --on-error ignore',
    2,
    `option '--on-error <WHAT>' argument 'ignore' is invalid. Allowed choices are abort, skip${SEE('import')}`,
  ],
  ['client create --name x', 2, `required option '--scope <SCOPES>' not specified${SEE('client create')}`],
  [
    `client create --name x --scope users:read --realm ${ID} --realm shop --realm ${ID} --realm ${ID}x`,
    2,
    '--realm, value 2: must be the identifier of a realm',
    '--realm, value 4: must be the identifier of a realm',
  ],
  [
    'client create --name x --scope users:read --scope nope',
    2,
    `--scope, value 2: must be one of ${SCOPE_WORDS.join(', ')}`,
  ],
  ['client create --name= --scope users:read', 2, '--name: must not be blank'],
  ['backup --database good.db', 2, 'a backup needs a target: pass either --to FILE or --into FOLDER'],
  [
    `delete relm ${ID} --in-pages --yes`,
    2,
    'the resource must be one of realm, oidc-profile, password-profile, user-info, oidc-profile-info, password-profile-info; or realms, providers, users, links, usernames',
  ],
  [
    `delete realm ${ID} --database good.db --yes`,
    2,
    'the service deletes the record: pass settings of the database only with --in-pages',
  ],
  ['delete realm shop --in-pages --yes', 2, `expected REALM_ID after "realm": ${IDS}`],
  [
    `erase user ${ID} jane --yes`,
    2,
    `command-argument value 'jane' is invalid for argument 'user'. Expected an ID of the form 8-4-4-4-12, in hex, as "authrealm list" and "authrealm export" show it${SEE('erase user')}`,
  ],
  [
    `delete realm ${ID} --in-pages --database good.db`,
    2,
    `this deletes realm ${ID} and everything below it: pass --yes to confirm`,
  ],
  ['client list --database none.db', 1, NO_DATABASE],
  ['export --database none.db', 1, NO_DATABASE],
  [
    'client list --database folder.db',
    1,
    'the database folder.db cannot be opened: it is no file; the path is a folder: pass a file in it with --database',
  ],
  [
    'client list --database foreign.db',
    1,
    'the database foreign.db belongs to another program, because it has tables but none of authrealm: pass another path with --database',
  ],
  [
    'client list --database text.db',
    1,
    'the database text.db cannot be opened: file is not a database; the file is not a SQLite database, or its header is damaged: pass another path with --database, or restore a backup with authrealm restore',
  ],
  [
    'audit verify --database empty.db',
    1,
    'empty.db is empty: mount the volume of the database or restore a backup, or create one with authrealm init',
  ],
  [
    'client list --database good.db --master-key-file none',
    1,
    `the master key file none cannot be read: ${NONE}`,
  ],
  [
    'client list --database good.db --master-key-file secret',
    1,
    'secret is not a valid master key: expected 32 bytes as base64url or hex, as "authrealm keys make" writes them',
  ],
  [
    'client update nobody --state disabled --database good.db',
    1,
    'no client nobody: list the clients with "authrealm client list"',
  ],
  [
    'init --database good.db',
    1,
    'this database already has clients: create another client with "authrealm client create"',
  ],
  [
    'client update nobody --state disabled --name shop --database good.db',
    2,
    `option '--state <STATE>' cannot be used with option '--name <NAME>'${SEE('client update')}`,
  ],
  ['import none --database good.db', 1, `none cannot be read: ${NONE}`],
  [
    'import folder.db --database good.db',
    1,
    'folder.db cannot be read: it is a folder: pass the path of a file',
  ],
  [
    'export secret --database good.db',
    1,
    'secret could not be written: it exists, and is never overwritten: choose another name',
  ],
  [
    'export none/x --database good.db',
    1,
    'none/x could not be written: folder none does not exist: create it, or choose another one',
  ],
  [
    'restore none --database new.db',
    1,
    'the backup none does not exist: pass the path of a file that "authrealm backup" created',
  ],
  ['keys make secret', 1, 'secret already exists, and a key file is never overwritten: name another file'],
  ['keys withdraw k --database good.db', 1, 'no signing key k: list the keys with "authrealm keys list"'],
  ['serve --database good.db --tls-cert none --tls-key none', 1, `--tls-cert: none cannot be read: ${NONE}`],
  ['audit verify --database good.db --checkpoints none', 1, `--checkpoints: none cannot be read: ${NONE}`],
  [
    `get realm ${ID}`,
    2,
    '--client-id is missing: create a client with "authrealm client create"',
    'the client secret is missing: pass --client-secret-file, or set AUTHREALM_CLIENT_SECRET',
  ],
  [
    `${GET} ${CLOSED}`,
    1,
    `cannot reach ${CLOSED}: is "authrealm serve" running? If it listens elsewhere, pass its URL with --url`,
  ],
  [
    `${GET} ${HTTPS}`,
    1,
    `cannot reach ${HTTPS} (EPROTO): check the URL in --url, whether the service has TLS, and the network`,
  ],
  [
    `${GET} http://${TLS_PORT}`,
    1,
    `cannot reach http://${TLS_PORT} (ECONNRESET): check the URL in --url, whether the service has TLS, and the network`,
  ],
  [
    `${GET} ${HTTP}`,
    1,
    'POST /oauth/access_token was answered 401 Unauthorized: the client is unknown, disabled, or its secret is another one: check the client ID and the secret with "authrealm client list", or issue a new secret with "authrealm client rotate"',
  ],
  [
    `${GET} http://shop.example`,
    2,
    '--url must be https, because http sends secret and tokens unencrypted; if the network is protected otherwise, set --allow-plain-http',
  ],
];

const run = (line: string) => runAuthrealm(line.split(' ').filter(Boolean));
const previousFolder = process.cwd();

process.chdir(folder);
await createFixture(service.db);
writeFileSync(join(folder, 'secret'), 'wrong');
writeFileSync(join(folder, 'empty.db'), '');
writeFileSync(
  join(folder, 'text.db'),
  'This is a text, and long enough to be taken for a header. '.repeat(9),
);
mkdirSync(join(folder, 'folder.db'));
const foreign = new Database(join(folder, 'foreign.db'));
foreign.run('create table theirs (id)');
foreign.close();
expect((await run('init --database good.db')).code).toBe(0);
afterAll(async () => {
  process.chdir(previousFolder);
  await secure.stop(true);
});

test('there are at least forty mistakes', () => {
  expect(MISTAKES.length).toBeGreaterThanOrEqual(40);
});

test.each(MISTAKES.map((mistake) => [mistake[0], mistake] as const))(
  'authrealm %s',
  async (line, mistake) => {
    const [, code, ...sentences] = mistake;
    const result = await run(line);
    expect([result.code, result.stderr]).toEqual([
      code,
      sentences.map((each) => `authrealm: ${each}\n`).join(''),
    ]);
  },
);

test('serve on a port in use names the address, the port and the option', async () => {
  const why = 'EADDRINUSE. Pass an address of this machine and a free port with --host or --port';
  for (const database of ['good.db', 'sqlite::memory:']) {
    const { code, stderr } = await run(`serve --database ${database} --port ${PORT}`);
    expect([code, stderr]).toEqual([1, `authrealm: cannot listen on 127.0.0.1 port ${PORT}: ${why}\n`]);
  }
  const several = await run(`serve --database good.db --port ${PORT} --processes 2`);
  expect([several.code, several.stderr]).toEqual([1, expect.stringMatching(/^authrealm: .*port/)]);
});

test('serve on a database in a missing folder is refused', async () => {
  const { code, stderr } = await run('serve --database sqlite:/nowhere/at/all.db');
  const sentence = /^authrealm: .*cannot be opened.* folder \/nowhere\/at does not exist: create it.*\n$/;
  expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
});

test('export into a folder without rights names the user and the folder', async () => {
  mkdirSync(join(folder, 'closed'));
  chmodSync(join(folder, 'closed'), 0o555);
  const { code, stderr } = await runCommand([
    ...AUTHREALM_UNPRIVILEGED,
    'export',
    'closed/x',
    '--database',
    'good.db',
  ]);
  const why = `user ${USER} may not create files in closed: change its owner or its mode, or choose another folder`;
  expect([code, stderr]).toEqual([1, `authrealm: closed/x could not be written: ${why}\n`]);
});
