import { describe, expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findPort } from '../support/daemons.ts';
import { writeForeignExports } from '../support/foreign_exports.ts';
import { type Block, blocksOf, readGuide, runBlocks } from '../support/guides.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import { createFixture, errorsOf, freshFolder, startService } from '../support/service.ts';

/** Runs the code blocks of the guides in order, as a reader would. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('five-minutes.md', () => {
  test('five-minutes.md: its blocks create a user that both links find', async () => {
    const blocks = blocksOf('five-minutes.md');
    const { outputs, log } = await runBlocks(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` });
    const outputOf = (words: string): string =>
      outputs[blocks.findIndex(({ text }) => text.includes(words))] ?? '';

    const [, user] = /^id +(\S+)$/m.exec(outputOf('get users')) ?? [];
    expect(user).toMatch(/^[0-9a-f-]{36}$/);
    const byId = outputOf('get links');
    expect(byId.match(/^user_id +(\S+)$/gm)?.map((line) => line.split(/ +/)[1])).toEqual([user, user]);
    expect(byId).toMatch(/^subject +110248495921238986420$/m);
    expect(byId).toMatch(/^username +jane@example\.com$/m);
    const found = outputOf('find links').split('\n');
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

/** A block between those of a guide. */
const sh = (text: string): Block => ({ language: 'sh', text });

const START = `authrealm serve >>serve.log 2>&1 &
service=$!
until curl -sf http://127.0.0.1:8080/readyz || ! kill -0 "$service"; do sleep 0.1; done`;

const STOP = 'kill "$service"\nwait "$service"';

test('backup-and-restore.md: its blocks restore a lost database without the erased user', async () => {
  const [jane, john] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
  const create = `umask 077
realm=$(authrealm init | sed -n 's/^realm  *//p')
for id in ${jane} ${john}; do
  printf '{"type":"user_authentication_info","realm_id":"%s","id":"%s","name":"%s","email":"%s@example.com"}\n' \
    "$realm" "$id" "$id" "$id"
done | authrealm import -`;
  const lose = `authrealm erase user --yes "$realm" ${john}
cp authrealm.db.checkpoints keys/
${STOP}
rm authrealm.db*`;
  const count = `authrealm export | grep -c ${jane}\nauthrealm export | grep -c ${john} || true`;
  const [backUp, restore, ...others] = blocksOf('backup-and-restore.md').filter(
    ({ language }) => language === 'sh',
  );
  if (!backUp || !restore || others.length > 0) throw new Error('backup-and-restore.md has other blocks');
  const blocks = [sh(create), sh(START), backUp, sh(lose), restore, sh(START), sh(count), sh(STOP)];
  const { outputs } = await runBlocks(blocks, { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` });
  const [, , backedUp, erased, restored, , counts] = outputs;
  expect(backedUp).toMatch(/^path +backups\/authrealm-\d{8}T\d{6}\.\d{3}Z\.db\nbytes +\d+\n/);
  expect(erased).toContain('the data is overwritten in the database file');
  expect(restored).toMatch(/^erasures_applied +1\nusers_erased +1$/m);
  expect(counts).toBe('1\n0\n');
}, 300_000);

test('production.md: its blocks start a service, back it up, and rehearse a restore', async () => {
  const [data, programs] = [freshFolder(), freshFolder()];
  // Without root, systemd and cron.
  const here = (text: string) =>
    text
      .replaceAll('/var/lib/authrealm', data)
      .replaceAll('/var/backups/authrealm', `${data}/backups`)
      .replaceAll('-o authrealm -g authrealm ', '')
      .replaceAll('/usr/bin/', '')
      .replaceAll('9464', String(findPort()));
  const program = (name: string, text: string) =>
    writeFileSync(join(programs, name), `#!/bin/sh -eu\n${text}\n`, { mode: 0o755 });
  program('runuser', 'shift 3\nexec "$@"');
  const pid = join(data, 'pid');
  program('systemctl', `${START.replace('8080', '$AUTHREALM_PORT')}\necho "$service" >${pid}`);
  const stop = `kill "$(cat ${pid})"\nwhile kill -0 "$(cat ${pid})" 2>/dev/null; do sleep 0.1; done`;
  const blocks = blocksOf('production.md').map(({ language, text }) => ({ language, text: here(text) }));
  const config = join(data, 'authrealm.conf');
  writeFileSync(config, blocks.find(({ language }) => language === 'ini')?.text ?? '', { mode: 0o600 });
  const crontab = blocks.find(({ language }) => language === 'crontab')?.text ?? '';
  const [, nightly = ''] = /^17 2 \* \* \* authrealm (.+)\n$/.exec(crontab) ?? [];
  const failing = nightly.replace(`${data}/backups`, '/nowhere');
  const [start, backUp, rehearse, ...others] = blocks.filter(({ language }) => language === 'sh');
  if (!start || !backUp || !rehearse || others.length > 0) throw new Error('production.md has other blocks');
  const { outputs } = await runBlocks([start, backUp, sh(nightly), sh(failing), rehearse, sh(stop)], {
    PATH: `${programs}:${join(ROOT, 'bin')}:${process.env.PATH}`,
    AUTHREALM_CONFIG: config,
    AUTHREALM_DRAIN_DELAY: '0',
  });
  expect(outputs).toEqual([
    expect.stringMatching(/^created the master key .+\n(?:.*\n)*\{"status":"ok",.*\}healthy$/m),
    expect.stringMatching(/^path +\S+\.db\nbytes +\d+\n/),
    '',
    expect.stringContaining('/nowhere'),
    expect.stringMatching(/^erasures_applied +0\n(?:.*\n)*healthy$/m),
    '',
  ]);
  expect(readdirSync(join(data, 'backups')).filter((name) => name.endsWith('.db'))).toHaveLength(2);
}, 300_000);

test('copy-a-database.md: its blocks move a served database and move it back', async () => {
  const blocks = blocksOf('copy-a-database.md').filter(({ language }) => language === 'sh');
  const path = `${join(ROOT, 'bin')}:${process.env.PATH}`;
  const target = await (await sharedServer()).freshDatabase();
  const { outputs } = await runBlocks(blocks, { PATH: path, TARGET: target });
  const copies = outputs.flatMap((each) =>
    [...each.matchAll(/^source and target are equal: (\d+) rows$/gm)].map(([, rows]) => Number(rows)),
  );
  expect(copies).toEqual([expect.any(Number), copies[0]]);
  expect(copies[0]).toBeGreaterThan(1);
  expect(outputs.find((each) => each.includes('late'))).toContain('first');
}, 300_000);

test('moving-in.md: its blocks import the users of an export of each system', async () => {
  const folder = freshFolder();
  const systems = writeForeignExports(folder).map(({ system }) => system);
  const blocks = blocksOf('moving-in.md');
  const { outputs } = await runBlocks(blocks, {}, folder);
  const imports = outputs.flatMap((each) => each.match(/^imported .*$/gm) ?? []);
  expect(imports).toHaveLength(1 + systems.length);
  for (const each of imports) expect(each).toEndWith('unchanged 0, replaced 0, refused 0');
  const counts = (outputs.at(-1) ?? '').matchAll(/^ *(\d+) (\S+)$/gm);
  // The links of Auth0 to another provider than Google are dropped.
  expect(Object.fromEntries(counts.map(([, count, type]) => [type, count]))).toEqual({
    'authentication-realm': '1',
    'oidc-profile': '1',
    password_profile: '1',
    user_authentication_info: '30',
    user_authentication_oidc_profile_info: '8',
    user_authentication_password_profile_info: '23',
  });
}, 300_000);

describe('test-suite.md', () => {
  const GUIDE = 'test-suite.md';

  describe('the table of unsupported requests', async () => {
    // Method and path, the rejected parameter if there is one, and the status.
    const ROW = /^\| `(\w+ \S+)`(?: with `(\S+)`)?[^|]*\| (\d+) \|/gm;
    const rows = [...readGuide(GUIDE).matchAll(ROW)].map(([, call = '', rejected = '', status]) => ({
      call,
      rejected,
      status: Number(status),
    }));

    const service = await startService(OFFLINE);
    const fixture = await createFixture(service.db);
    const token = await service.token(FULL_SCOPE);

    test('test-suite.md lists two unsupported requests', () => {
      expect(rows).toHaveLength(2);
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

    test('the further links of an OIDC profile are 400 or 404 in a realm without redirect URIs', async () => {
      const { realm, oidcProfile } = fixture;
      const path = `/v2/authentication-realms/${realm}/oidc-profiles/${oidcProfile}`;
      const { links } = (await (await service.get(path, token)).json()) as { links: Record<string, string> };
      const { self, ...others } = links;
      expect(self).toBe(service.url + path);
      const statuses = Object.values(others).map(async (url) => (await service.get(url)).status);
      expect(await Promise.all(statuses)).toEqual([400, 400, 404]);
    });
  });
});
