import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sharedServer } from '../support/postgres_server.ts';
import { runCommand } from '../support/processes.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import {
  errorsOf,
  freePort,
  freshFolder,
  type Planted,
  plant,
  type Service,
  startService,
} from '../support/service.ts';

/** The guides as a reader has them: their blocks, pasted in order. */

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

/** What a reader would do with a block: paste it, or save it under the name in its first line. */
function pasted({ language, text }: Block): string {
  if (language === 'sh') return text;
  const [, name] = /^\/\/ (\S+)\n/.exec(text) ?? [];
  if (language !== 'js' || name === undefined) throw new Error(`nobody knows what to do with ${text}`);
  return `cat >${name} <<'END OF ${name}'\n${text}END OF ${name}\n`;
}

const MARK = '--- the next block ---';

interface Pasted {
  /** What each block wrote. */
  readonly written: readonly string[];
  /** The log of the service, every request in it. */
  readonly log: string;
}

/**
 * Pastes blocks into one shell, in a folder that looks like a clone after `npm ci`; the port alone is another one, and
 * requests are logged.
 */
async function paste(blocks: readonly Block[], more: Record<string, string> = {}): Promise<Pasted> {
  const folder = freshFolder();
  for (const part of ['bin', 'src', 'package.json', 'node_modules'])
    symlinkSync(join(ROOT, part), join(folder, part));
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const port = String(await freePort());
  const script = join(folder, 'pasted.sh');
  const goodbye = `trap '[ -z "\${service:-}" ] || kill "$service" 2>/dev/null || :' EXIT`;
  const text = [`cd ${folder}`, goodbye, ...blocks.map(pasted)].join(`\necho '${MARK}'\n`);
  writeFileSync(script, text.replaceAll('8080', port));
  const setting = { AUTHREALM_PORT: port, AUTHREALM_LOG_REQUESTS: 'full' };
  const environment = { ...setting, HOME: folder, TMPDIR: temporary, ...more };
  const { code, stdout, stderr } = await runCommand(['sh', '-eu', script], environment);
  if (code !== 0) throw new Error(`ended with ${code}: ${stdout}${stderr}`);
  const [log = ''] = [...new Bun.Glob('**/serve.log').scanSync(folder)];
  return { written: stdout.split(`${MARK}\n`).slice(2), log: await ended(join(folder, log)) };
}

/** The log of a service that was told to stop, once it has. */
async function ended(path: string): Promise<string> {
  for (let tries = 0; tries < 200; tries += 1) {
    const log = readFileSync(path, 'utf8');
    if (log.includes('"event":"stopped"')) return log;
    await Bun.sleep(25);
  }
  throw new Error('the service did not stop');
}

describe('five-minutes.md', () => {
  test('begins with an installation, and ends with a user that both links lead to', async () => {
    const [install, ...blocks] = blocksOf('five-minutes.md');
    // What it installs is what this test runs.
    expect(install).toEqual({ language: 'sh', text: 'npm ci\n' });
    const { written, log } = await paste(blocks);
    const writtenBy = (words: string): string =>
      written[blocks.findIndex(({ text }) => text.includes(words))] ?? '';

    const [, user] = /^id +(\S+)$/m.exec(writtenBy('get user-info')) ?? [];
    expect(user).toMatch(/^[0-9a-f-]{36}$/);
    const byId = writtenBy('get oidc-profile-info');
    expect(byId.match(/^user_id +(\S+)$/gm)?.map((line) => line.split(/ +/)[1])).toEqual([user, user]);
    expect(byId).toMatch(/^subject +110248495921238986420$/m);
    expect(byId).toMatch(/^username +jane@example\.com$/m);
    const found = writtenBy('find oidc-profile-info').split('\n');
    expect(found.filter((line) => line.startsWith(`${user}`))).toHaveLength(2);
    const { data } = JSON.parse(writtenBy('--data-urlencode'));
    expect(data).toMatchObject([
      {
        subject: '110248495921238986420',
        relationships: { user_authentication_info: { data: { id: user } } },
      },
    ]);
    // `find` asks in a body: proxies log addresses. The one question in an address is that of the last curl.
    const asked = [
      ...log.matchAll(
        /"method":"(\w+)","route":"\/v2\/authentication-realms\/:realm_id\/user-authentication-(?:oidc|password)-profile-info(\/search)?"/g,
      ),
    ];
    expect(asked.map(([, method, search]) => [method, search])).toEqual([
      ['POST', '/search'],
      ['POST', '/search'],
      ['GET', undefined],
    ]);
  }, 300_000);

  test('puts no password and no secret of a provider on a command line', () => {
    const words = blocksOf('five-minutes.md').flatMap(
      ({ text }) => text.match(/\b(password|client_secret)=\S+/g) ?? [],
    );
    expect(words).toContain('password=@password.txt');
    expect(words).toContain('client_secret=@provider-secret.txt');
    // The form that goes through a pipe to curl.
    expect(words.filter((word) => !word.includes('=@'))).toEqual(["client_secret=%s'"]);
  });
});

describe('backup-and-restore.md', () => {
  test('its blocks lose a directory, and bring it back without the one who was erased', async () => {
    const blocks = blocksOf('backup-and-restore.md');
    const { written } = await paste(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` });
    const writtenBy = (words: string): string =>
      written[blocks.findIndex(({ text }) => text.includes(words))] ?? '';
    expect(writtenBy('authrealm backup')).toMatch(/^backups\/authrealm-\d{8}T\d{6}\.\d{3}Z\.db: \d+ bytes/);
    expect(writtenBy('authrealm restore')).toContain(
      'applied 1 erasures that the backup did not contain; removed 1 users',
    );
    expect(writtenBy('authrealm export')).toEndWith('1\n0\n');
  }, 300_000);
});

describe('moving-house.md', () => {
  test('its blocks move a directory that is being served, and move it back', async () => {
    const blocks = blocksOf('moving-house.md').filter(({ language }) => language === 'sh');
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const next = await (await sharedServer()).freshDatabase();
    const { written } = await paste(blocks, { PATH: path, AUTHREALM_COPY_TO: next });
    const copies = written.flatMap((each) =>
      [...each.matchAll(/^source and target are equal; (\d+) rows added/gm)].map(([, rows]) => Number(rows)),
    );
    // The client that was late, its entry in the log and the clock of that; on the way back nobody wrote.
    expect(copies).toEqual([expect.any(Number), 3, (copies[0] ?? 0) + 2, 0]);
    expect(copies[0]).toBeGreaterThan(1);
    expect(written.find((each) => each.includes('late'))).toContain('first');
  }, 300_000);
});

describe('test-suite.md', () => {
  const GUIDE = 'test-suite.md';

  test('its blocks run in their order', async () => {
    const blocks = blocksOf(GUIDE);
    const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
    const presets = blocks.findIndex(({ text }) => text.includes('--preset-realms'));
    const again = blocks.slice(presets, presets + 1);
    const { written } = await paste([...blocks, ...again], { PATH: path });
    const writtenBy = (words: string): string =>
      written[blocks.findIndex(({ text }) => text.includes(words))] ?? '';

    expect(writtenBy('--preset-realms').match(/ {2}.+$/gm)).toEqual([
      '  Buyer Organization',
      '  Merchant Organization',
      '  Account Management Realm',
    ]);
    expect(written.at(-1)).toBe(written[presets]?.replaceAll('\n', ' (exists)\n'));
    expect(writtenBy('node shop.mjs')).toEndWith('1 true\n');
    expect(writtenBy('node shopper.mjs')).toBe('200\n');
    const names = JSON.parse(writtenBy('-H "Authorization')).data.map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual([
      'Account Management Realm',
      'Buyer Organization',
      'Fixtures',
      'Merchant Organization',
    ]);
    expect(writtenBy('authrealm purge')).toContain('deleted 4 records');
    expect(writtenBy('authrealm purge')).toContain('imported 4, unchanged 0');
    expect(JSON.parse(writtenBy('sqlite::memory:'))).toMatchObject({ status: 'ok' });
  }, 300_000);

  describe('what it says is not offered', () => {
    // A method and a path, a parameter where that is what is refused, and the status.
    const ROW = /^\| `(\w+ \S+)`(?: with `(\S+)`)?[^|]*\| (\d+) \|/gm;
    const rows = [...read(GUIDE).matchAll(ROW)].map(([, call = '', refused = '', status]) => ({
      call,
      refused,
      status: Number(status),
    }));
    let service: Service;
    let planted: Planted;
    let token: string;

    beforeAll(async () => {
      service = await startService(OFFLINE);
      planted = await plant(service.db);
      token = await service.token(FULL_SCOPE);
    });
    afterAll(() => service.stop());

    test('is a whole table', () => {
      expect(rows).toHaveLength(8);
    });

    test.each(rows)('$call', async ({ call, refused, status }) => {
      const [method, pattern = ''] = call.split(' ');
      const { realm, passwordProfile } = planted;
      const path = pattern.replace(':realm', realm).replace(':id', passwordProfile).replace(':store', realm);
      const ask = () =>
        method === 'GET' ? service.get(path, token) : service.post(path, token, { data: {} });
      const form = Object.fromEntries(new URLSearchParams(refused));
      const answer = await (refused === '' ? ask() : service.grant(form));
      expect([answer.status, (await errorsOf(answer)).length]).toEqual([status, 1]);
    });

    test('where the further links of an OIDC profile lead', async () => {
      const { realm, oidcProfile } = planted;
      const path = `/v2/authentication-realms/${realm}/oidc-profiles/${oidcProfile}`;
      const { links } = (await (await service.get(path, token)).json()) as { links: Record<string, string> };
      const { self, ...further } = links;
      expect(self).toBe(service.url + path);
      const statuses = Object.values(further).map(async (url) => (await service.get(url)).status);
      expect(await Promise.all(statuses)).toEqual([501, 501, 501]);
    });
  });
});
