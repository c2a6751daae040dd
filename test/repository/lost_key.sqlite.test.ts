import { expect, test } from 'bun:test';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KEY_ADVICE } from '../../src/cli/key_file.ts';
import { freshFolder } from '../support/folder.ts';
import { runAuthrealm, runCommand } from '../support/processes.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';

/** docs/guides/keys.md#when-the-master-key-is-lost, run as it is printed. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const page = read('docs/guides/keys.md').split('\n## When the master key is lost\n')[1] ?? '';

/** What the steps use of Debian's sqlite3, which need not be installed here. */
const SQLITE = `
const [file, statement = await Bun.stdin.text()] = process.argv.slice(2).filter((word) => word !== '-bail');
const [, copy] = /^\\.backup (\\S+)$/.exec(statement) ?? [];
const db = new (await import('bun:sqlite')).Database(file, { readwrite: true });
db.run(copy === undefined ? statement : \`vacuum into '\${copy}'\`);
db.close();`;

function pathWithSqlite(): string {
  const programs = freshFolder();
  writeFileSync(join(programs, 'sqlite3.ts'), SQLITE);
  const shell = `#!/bin/sh\nexec '${process.execPath}' '${programs}/sqlite3.ts' "$@"\n`;
  writeFileSync(join(programs, 'sqlite3'), shell, { mode: 0o755 });
  return `${programs}:${join(ROOT, 'bin')}:${process.env.PATH}`;
}

test('keys.md and production.md name what is lost with the key in the words of the program', () => {
  const [, lost = ''] = KEY_ADVICE.split('Without it, ');
  expect(lost).not.toBe('');
  for (const path of ['docs/guides/keys.md', 'docs/guides/production.md'])
    expect(
      read(path)
        .replaceAll(/\[(.+?)\]\(.+?\)/g, '$1')
        .replaceAll(/\s+/g, ' '),
    ).toContain(lost);
});

test.each(['the database', 'only a backup'])(
  'the steps for a lost master key make records of %s available to new clients, and passwords again',
  async (left) => {
    const folder = freshFolder();
    const database = join(folder, 'authrealm.db');
    const backup = join(freshFolder(), 'backup.db');
    const environment = { PATH: pathWithSqlite() };
    const runStep = async (step = 'exit 1') =>
      expect(await runCommand(['sh', '-euc', `cd ${folder}\n${step}`], environment)).toMatchObject({
        code: 0,
      });
    const before = await startService({ database: `sqlite:${database}` });
    const fixture = await createFixture(before.db);
    const { clientId, secret } = await before.client('profile-infos:read');
    const oldToken = await before.token('profile-infos:read');
    await runStep('authrealm console link --scope users:read');
    await runStep(`authrealm backup --to ${backup}`);
    await before.stop();
    rmSync(`${database}.key`);
    if (left === 'only a backup') {
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      await runStep(/`(cp BACKUP authrealm\.db)`/.exec(page)?.[1]?.replace('BACKUP', backup));
    }
    const [copying, removal, importing] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, step]) => step);
    await runStep(copying);
    await runStep(removal);
    expect(readdirSync(folder)).toContain('lost.db');

    const after = await startService({ database: `sqlite:${database}`, baseUrl: before.url });
    expect((await after.requestGrant({ clientId, secret })).status).toBe(401);
    expect((await after.get(oidcPath(fixture), oldToken)).status).toBe(401);
    const token = await after.token('profile-infos:read');
    expect((await after.get(oidcPath(fixture), token)).status).toBe(200);
    await after.stop();
    const check = async () => {
      const commands = [['doctor'], ['audit', 'verify', '--records']];
      const runs = await Promise.all(
        commands.map((command) => runAuthrealm([...command, '--database', database])),
      );
      return runs.map(({ code, stdout }) => [code, stdout]);
    };
    expect(await check()).toEqual([
      [0, expect.stringMatching(/^healthy$/m)],
      [1, expect.stringContaining('set its password again')],
    ]);
    await runStep(importing);
    expect(await check()).toEqual([
      [0, expect.stringMatching(/^healthy$/m)],
      [0, expect.stringMatching(/^clean$/m)],
    ]);
  },
);
