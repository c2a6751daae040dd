import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildClientLibrary } from '../support/client_library.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { runCommand } from '../support/processes.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import {
  createFixture,
  errorsOf,
  type Fixture,
  freePort,
  freshFolder,
  type Service,
  startService,
} from '../support/service.ts';

/** Runs the code blocks of the guides in order, as a reader would. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (guide: string): string => readFileSync(join(ROOT, 'docs/guides', guide), 'utf8');

interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksOf(guide: string): readonly Block[] {
  const found = [...read(guide).matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return found.map(([, language = '', text = '']) => ({ language, text }));
}

/** The shell commands for a block: itself, or those that save it under the name in its first line. */
function commandsOf({ language, text }: Block): string {
  if (language === 'sh') return text;
  const [, name] = /^\/\/ (\S+)\n/.exec(text) ?? [];
  if (language !== 'js' || name === undefined)
    throw new Error(`neither a shell block nor a named file: ${text}`);
  return `cat >${name} <<'END OF ${name}'\n${text}END OF ${name}\n`;
}

const SEPARATOR = '--- the next block ---';

interface BlockOutput {
  /** The output of each block. */
  readonly outputs: readonly string[];
  /** The log of the service, including every request. */
  readonly log: string;
}

/** Runs blocks in one shell, in a folder like a clone after `npm ci`, on other ports and with request logging. */
async function runBlocks(
  blocks: readonly Block[],
  more: Record<string, string> = {},
  folder: string = freshFolder(),
): Promise<BlockOutput> {
  for (const part of ['bin', 'src', 'package.json', 'node_modules'])
    symlinkSync(join(ROOT, part), join(folder, part));
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const port = String(await freePort());
  const ports: Readonly<Record<string, string>> = { 8080: port, 3000: String(await freePort()) };
  const script = join(folder, 'blocks.sh');
  const stopAtExit = `trap 'kill \${service:-} \${login:-} 2>/dev/null || :' EXIT`;
  const text = [`cd ${folder}`, stopAtExit, ...blocks.map(commandsOf)].join(`\necho '${SEPARATOR}'\n`);
  writeFileSync(
    script,
    text.replaceAll(/8080|3000/g, (each) => ports[each] ?? ''),
  );
  const setting = { AUTHREALM_PORT: port, AUTHREALM_LOG_REQUESTS: 'full' };
  const environment = { ...setting, HOME: folder, TMPDIR: temporary, ...more };
  const { code, stdout, stderr } = await runCommand(['sh', '-eu', script], environment);
  if (code !== 0) throw new Error(`ended with ${code}: ${stdout}${stderr}`);
  const [log = ''] = [...new Bun.Glob('**/serve.log').scanSync(folder)];
  return { outputs: stdout.split(`${SEPARATOR}\n`).slice(2), log: await completeLog(join(folder, log)) };
}

/** The log of a stopping service; resolves once the service has stopped. */
async function completeLog(path: string): Promise<string> {
  for (let tries = 0; tries < 200; tries += 1) {
    const log = readFileSync(path, 'utf8');
    if (log.includes('"event":"stopped"')) return log;
    await Bun.sleep(25);
  }
  throw new Error('the service did not stop');
}

describe('five-minutes.md', () => {
  test('five-minutes.md: its blocks create a user that both links find', async () => {
    const blocks = blocksOf('five-minutes.md');
    const { outputs, log } = await runBlocks(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` });
    const outputOf = (words: string): string =>
      outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';

    const [, user] = /^id +(\S+)$/m.exec(outputOf('get user-info')) ?? [];
    expect(user).toMatch(/^[0-9a-f-]{36}$/);
    const byId = outputOf('get oidc-profile-info');
    expect(byId.match(/^user_id +(\S+)$/gm)?.map((line) => line.split(/ +/)[1])).toEqual([user, user]);
    expect(byId).toMatch(/^subject +110248495921238986420$/m);
    expect(byId).toMatch(/^username +jane@example\.com$/m);
    const found = outputOf('find oidc-profile-info').split('\n');
    expect(found.filter((line) => line.startsWith(`${user}`))).toHaveLength(2);
    const { data } = JSON.parse(outputOf('--data-urlencode'));
    expect(data).toMatchObject([
      {
        subject: '110248495921238986420',
        relationships: { user_authentication_info: { data: { id: user } } },
      },
    ]);
    // `find` sends its query in a body, because proxies log URLs. Only the last curl has its query in the URL.
    const requests = [
      ...log.matchAll(
        /"method":"(\w+)","route":"\/v2\/authentication-realms\/:realm_id\/user-authentication-(?:oidc|password)-profile-info(\/search)?"/g,
      ),
    ];
    expect(requests.map(([, method, search]) => [method, search])).toEqual([
      ['POST', '/search'],
      ['POST', '/search'],
      ['GET', undefined],
    ]);
  }, 300_000);

  test('five-minutes.md: no command line contains a password or a client secret', () => {
    const words = blocksOf('five-minutes.md').flatMap(
      ({ text }) => text.match(/\b(password|client_secret)=\S+/g) ?? [],
    );
    expect(words).toContain('password=@password.txt');
    expect(words).toContain('client_secret=@provider-secret.txt');
    // The form body that is piped to curl.
    expect(words.filter((word) => !word.includes('=@'))).toEqual(["client_secret=%s'"]);
  });
});

describe('backup-and-restore.md', () => {
  test('backup-and-restore.md: its blocks restore a lost database without the erased user', async () => {
    const blocks = blocksOf('backup-and-restore.md');
    const { outputs } = await runBlocks(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` });
    const outputOf = (words: string): string =>
      outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';
    expect(outputOf('authrealm backup')).toMatch(/^backups\/authrealm-\d{8}T\d{6}\.\d{3}Z\.db: \d+ bytes/);
    expect(outputOf('authrealm erase')).toContain('no erased data is left in the database file');
    expect(outputOf('authrealm restore')).toContain(
      'applied 1 erasures that the backup did not contain; removed 1 users',
    );
    expect(outputOf('authrealm export')).toEndWith('1\n0\n');
  }, 300_000);
});

describe('copy-a-database.md', () => {
  test('copy-a-database.md: its blocks move a served database and move it back', async () => {
    const blocks = blocksOf('copy-a-database.md').filter(({ language }) => language === 'sh');
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const target = await (await sharedServer()).freshDatabase();
    const { outputs } = await runBlocks(blocks, { PATH: path, AUTHREALM_COPY_TO: target });
    const copies = outputs.flatMap((each) =>
      [...each.matchAll(/^source and target are equal; (\d+) rows added/gm)].map(([, rows]) => Number(rows)),
    );
    // The second copy adds the client created late, its log entry and the clock of the log; nothing was outputs before the fourth.
    expect(copies).toEqual([expect.any(Number), 3, (copies[0] ?? 0) + 2, 0]);
    expect(copies[0]).toBeGreaterThan(1);
    expect(outputs.find((each) => each.includes('late'))).toContain('first');
  }, 300_000);
});

describe('login-page.md', () => {
  const GUIDE = 'login-page.md';

  test('login-page.md: its blocks sign a user in, and authrealm is asked for each password', async () => {
    const blocks = blocksOf(GUIDE);
    const folder = freshFolder();
    await buildClientLibrary(join(folder, 'dist'));
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const { outputs, log } = await runBlocks(blocks, { PATH: path }, folder);
    const outputOf = (words: string): string =>
      outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';
    expect(outputOf('authrealm check')).toMatch(
      /^right: user 00000000-0000-4000-8000-000000000001\ndevice [\w-]{70}\n$/,
    );
    const answer = outputOf('curl -si');
    expect(answer).toMatch(/^HTTP\/1\.1 303 /m);
    expect(answer).toMatch(/^Location: \/\r$/im);
    expect(
      answer.match(/^Set-Cookie: (?:session|device)=[\w-]+; .*; HttpOnly; SameSite=Lax\r$/gim),
    ).toHaveLength(2);
    expect(log.match(/"route":"[^"]+\/check"/g)).toHaveLength(2);
  }, 300_000);

  test('login-page.md shows the text of examples/login_page/server.mjs', () => {
    const server = readFileSync(join(ROOT, 'examples/login_page/server.mjs'), 'utf8');
    expect(blocksOf(GUIDE).filter(({ language }) => language === 'js')).toEqual([
      { language: 'js', text: server },
    ]);
  });
});

test('test-suite-sign-in.md: its blocks sign in with both SDKs, with a secret and without', async () => {
  const blocks = blocksOf('test-suite-sign-in.md');
  const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
  const { outputs } = await runBlocks(blocks, { PATH: path });
  const outputsOf = (words: string) =>
    outputs.filter((_, index) => blocks[index]?.language === 'sh' && blocks[index]?.text.includes(words));
  const signedIn = 'John Doe 00000000-0000-4000-8000-000000000003 true\n';
  // The SDK prints lines about its token before.
  expect(outputsOf('node sign-in.mjs').map((output) => output.slice(-signedIn.length))).toEqual([
    signedIn,
    signedIn,
  ]);
  expect(outputsOf('node shopper-sign-in.mjs')).toEqual(['201 John Doe\n']);
}, 300_000);

describe('test-suite.md', () => {
  const GUIDE = 'test-suite.md';

  test('test-suite.md: its blocks run in order', async () => {
    const blocks = blocksOf(GUIDE);
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const presets = blocks.findIndex(({ text }) => text.includes('--preset-realms'));
    const again = blocks.slice(presets, presets + 1);
    const { outputs } = await runBlocks([...blocks, ...again], { PATH: path });
    const outputOf = (words: string): string =>
      outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';

    expect(outputOf('--preset-realms').match(/ {2}.+$/gm)).toEqual([
      '  Buyer Organization',
      '  Merchant Organization',
      '  Account Management Realm',
    ]);
    expect(outputs.at(-1)).toBe(outputs[presets]?.replaceAll('\n', ' (exists)\n'));
    expect(outputOf('node shop.mjs')).toEndWith('1 true\n');
    expect(outputOf('node shopper.mjs')).toBe('200\n');
    const names = JSON.parse(outputOf('-H "Authorization')).data.map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual([
      'Account Management Realm',
      'Buyer Organization',
      'Fixtures',
      'Merchant Organization',
    ]);
    expect(outputOf('authrealm purge')).toContain('deleted 4 records');
    expect(outputOf('authrealm purge')).toContain('imported 4, unchanged 0');
    expect(JSON.parse(outputOf('sqlite::memory:'))).toMatchObject({ status: 'ok' });
  }, 300_000);

  describe('the table of unsupported requests', () => {
    // Method and path, the rejected parameter if there is one, and the status.
    const ROW = /^\| `(\w+ \S+)`(?: with `(\S+)`)?[^|]*\| (\d+) \|/gm;
    const rows = [...read(GUIDE).matchAll(ROW)].map(([, call = '', rejected = '', status]) => ({
      call,
      rejected,
      status: Number(status),
    }));
    let service: Service;
    let fixture: Fixture;
    let token: string;

    beforeAll(async () => {
      service = await startService(OFFLINE);
      fixture = await createFixture(service.db);
      token = await service.token(FULL_SCOPE);
    });
    afterAll(() => service.stop());

    test('test-suite.md lists three unsupported requests', () => {
      expect(rows).toHaveLength(3);
    });

    test.each(rows)('test-suite.md: $call is answered with $status', async ({ call, rejected, status }) => {
      const [method, pattern = ''] = call.split(' ');
      const { realm, passwordProfile } = fixture;
      const path = pattern.replace(':realm', realm).replace(':id', passwordProfile).replace(':store', realm);
      const send = () =>
        method === 'GET' ? service.get(path, token) : service.post(path, token, { data: {} });
      const form = Object.fromEntries(new URLSearchParams(rejected));
      const answer = await (rejected === '' ? send() : service.requestToken(form));
      expect([answer.status, (await errorsOf(answer)).length]).toEqual([status, 1]);
    });

    test('the links of an OIDC profile other than self are answered with 501', async () => {
      const { realm, oidcProfile } = fixture;
      const path = `/v2/authentication-realms/${realm}/oidc-profiles/${oidcProfile}`;
      const { links } = (await (await service.get(path, token)).json()) as { links: Record<string, string> };
      const { self, ...others } = links;
      expect(self).toBe(service.url + path);
      const statuses = Object.values(others).map(async (url) => (await service.get(url)).status);
      expect(await Promise.all(statuses)).toEqual([501, 501, 501]);
    });
  });
});
