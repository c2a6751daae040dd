import { expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createFixture, databaseFile, freshFolder, startService } from '../support/service.ts';

/** Commands that destroy data ask on a terminal, and need `--yes` elsewhere. */

const service = await startService();
const fixture = await createFixture(service.db);
const folder = freshFolder();
const run = (...words: readonly string[]) => runCommand([AUTHREALM, ...words, ...service.database.args]);

const made = await run('backup', '--into', folder);
expect(made.code).toBe(0);
const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.db'));
const backup = join(folder, name);

const countRows = async () => {
  const tables = ['realm', 'user_info', 'client', 'webhook'];
  const counts = tables.map((table) =>
    service.database.query<{ n: number }>(`select count(*) as n from ${table}`),
  );
  return (await Promise.all(counts)).map(([row]) => row?.n);
};

async function createWebhook(): Promise<string> {
  const words = ['webhook', 'create', '--name', 'Hook', '--url', 'https://hooks.example.com/', '--json'];
  const { code, stdout, stderr } = await run(...words);
  expect([code, stderr]).toEqual([0, '']);
  return (JSON.parse(stdout) as { webhook_id: string }).webhook_id;
}

const COMMANDS: readonly [string, () => Promise<readonly string[]>][] = [
  ['delete --in-pages', async () => ['delete', '--in-pages', 'realm', fixture.realm]],
  ['erase user', async () => ['erase', 'user', fixture.realm, fixture.user]],
  ['client delete', async () => ['client', 'delete', (await service.client('users:read')).clientId]],
  ['webhook delete', async () => ['webhook', 'delete', await createWebhook()]],
  ['restore --replace', async () => ['restore', backup, '--replace']],
];

test.each(COMMANDS)('%s in a pipe without --yes is refused and changes nothing', async (_, wordsOf) => {
  const words = await wordsOf();
  const before = await countRows();
  const { code, stderr, stdout } = await run(...words);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^authrealm: this .+: pass --yes to confirm\n$/);
  expect(await countRows()).toEqual(before);
});

test.each(COMMANDS)('%s --dry-run shows what would be deleted and changes nothing', async (_, wordsOf) => {
  const words = await wordsOf();
  const before = await countRows();
  const { code, stderr, stdout } = await run(...words, '--dry-run');
  expect([code, stderr]).toEqual([0, '']);
  const showsRecord = stdout.includes(words.at(-1) ?? '');
  expect([stdout, showsRecord || /would (delete|erase|restore)/.test(stdout)]).toEqual([stdout, true]);
  expect(await countRows()).toEqual(before);
  expect(readdirSync(join(databaseFile(service), '..')).filter((name) => name.includes('replaced'))).toEqual(
    [],
  );
});

test('delete in a pipe without --yes is refused, and --dry-run shows the record', async () => {
  const { clientId, secret } = await service.client('users:read users:write');
  const secretFile = join(freshFolder(), 'secret');
  writeFileSync(secretFile, secret);
  const { realm, user } = fixture;
  const connection = ['--url', service.url, '--client-id', clientId, '--client-secret-file', secretFile];
  const remove = (...words: readonly string[]) =>
    runCommand([AUTHREALM, 'delete', 'user-info', realm, user, ...connection, ...words]);
  const before = await countRows();
  const refused = await remove();
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toMatch(/^authrealm: this .+: pass --yes to confirm\n$/);
  const shown = await remove('--dry-run');
  expect([shown.code, shown.stdout.includes(user)]).toEqual([0, true]);
  expect(await countRows()).toEqual(before);
});

/** Runs a command on a terminal of its own (script of util-linux), types a line, and returns what is shown. */
async function onTerminal(line: string, ...words: readonly string[]) {
  const command = [AUTHREALM, ...words, ...service.database.args].map((word) => `'${word}'`).join(' ');
  const child = Bun.spawn(['script', '-qec', command, '/dev/null'], {
    ...{ stdin: 'pipe', stdout: 'pipe' },
    env: { PATH: process.env.PATH ?? '' },
  });
  child.stdin.write(`${line}\n`);
  child.stdin.flush();
  const shown = await new Response(child.stdout).text();
  return { shown, code: await child.exited };
}

test('a destructive command on a terminal deletes only after the ID was typed', async () => {
  const { clientId } = await service.client('users:read');
  const refused = await onTerminal('y', 'client', 'delete', clientId);
  expect(refused.code).toBe(1);
  expect(refused.shown).toContain(`Type ${clientId} to confirm`);
  expect(refused.shown).toContain('not confirmed: nothing was changed');
  const confirmed = await onTerminal(clientId, 'client', 'delete', clientId);
  expect(confirmed.shown).toContain(`${clientId} is deleted`);
  expect(confirmed.code).toBe(0);
});
