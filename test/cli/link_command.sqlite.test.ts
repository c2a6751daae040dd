import { expect, test } from 'bun:test';
import { dirname } from 'node:path';
import { readSettings } from '../../src/app/config/parse.ts';
import { linkCommand } from '../../src/cli/context.ts';
import { freshDatabase } from '../support/database.ts';
import { atEnd } from '../support/ending.ts';
import { freshFolder } from '../support/folder.ts';
import { AUTHREALM, runCommand, startCommand, urlOf } from '../support/processes.ts';

test.each([1, 2])(
  'the command of the sign-in page prints a link in another folder and environment, with %i processes',
  async (processes) => {
    const { url } = await freshDatabase('sqlite');
    const words = ['serve', '--port', '0', '--processes', String(processes)];
    const serving = startCommand([AUTHREALM, ...words], { AUTHREALM_DATABASE: url });
    atEnd(() => serving.stop());
    const base = await urlOf(serving);
    const { data } = (await (await fetch(`${base}/console/ways`)).json()) as { data: { link: string } };
    const inFolder = `cd "${freshFolder()}" && PATH="${dirname(AUTHREALM)}:$PATH" && ${data.link}`;
    const { code, stdout, stderr } = await runCommand(['sh', '-c', inFolder]);
    expect([code, stderr, stdout]).toEqual([0, '', expect.stringMatching(/\/console#code=\S{22}\n/)]);
    expect(stdout).toStartWith(`${base}/console`);
  },
);

test.each([
  ['a file in a flag', { flags: { database: "it's.db" } }, ` --database '${process.cwd()}/it'\\''s.db'`],
  [
    'a URL with a password in a variable',
    {
      environment: {
        AUTHREALM_DATABASE: 'postgres://u:secret@db.example/d',
        AUTHREALM_MASTER_KEY_FILE: '/k',
      },
    },
    ' --database "$AUTHREALM_DATABASE" --master-key-file /k',
  ],
  ['the settings file', { file: { AUTHREALM_DATABASE: '/srv/a.db' } }, ''],
  ['defaults', {}, ''],
])('the command of the sign-in page has the options for %s', (_, given, options) => {
  const sources = { flags: {}, environment: {}, file: {}, ...given };
  const settings = readSettings(sources.flags, { ...sources.file, ...sources.environment });
  const command = linkCommand(sources, settings);
  expect(command).toBe(`authrealm console link --role support${options}`);
});
