import { describe, expect, test } from 'bun:test';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSettingsFile } from '../../src/app/config/settings_file.ts';
import { freshDatabase } from '../support/database.ts';
import { AUTHREALM_UNPRIVILEGED, runAuthrealm, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** The file that every command reads its settings from: docs/reference/settings.md. */

/** What systemd.exec(5), "EnvironmentFile", says about each line. */
const LINES: readonly [what: string, text: string, value: string][] = [
  ['a plain value', 'A=b c', 'b c'],
  ['white space around a value', ' A= \tb \t\r', 'b'],
  ['an empty value', 'A=', ''],
  ['quotes within a value', `A=b"c'd`, `b"c'd`],
  ['an escaped character', 'A=b\\"c\\\\d\\#', 'b"c\\d#'],
  ['a continued line', 'A=b\\\nc', 'bc'],
  ['a hash within a value', 'A=b # c', 'b # c'],
  ['single quotes', `A='b \\n "c'  `, 'b \\n "c'],
  ['single quotes over two lines', `A='b\nc'`, 'b\nc'],
  ['double quotes', 'A="b \\" \\\\ \\$ \\` \\x"', 'b " \\ $ ` \\x'],
  ['double quotes over two lines, one of them continued', 'A="b\nc\\\nd"', 'b\ncd'],
  ['comments and empty lines around it', '# A=1\n; A=2\n\n \nA=b\n#', 'b'],
  ['a later line', 'A=1\nA=2', '2'],
];

test.each(LINES)('a settings file has %s as an EnvironmentFile of systemd has', (_, text, value) => {
  expect(parseSettingsFile(text, 'x.conf')).toEqual({ A: value });
  expect(parseSettingsFile(`${text}\n`, 'x.conf')).toEqual({ A: value });
});

test.each(['A', '\n[Service]', 'A B=c', 'A="b', "A='b\n"])(
  'a line that is no assignment is refused with its number: %p',
  (text) => {
    expect(() => parseSettingsFile(`#\n${text}`, 'x.conf')).toThrow(
      /^line \d of the settings file x\.conf is not a NAME=value assignment$/,
    );
  },
);

describe('commands', async () => {
  const { url } = await freshDatabase();
  const config = join(freshFolder(), 'authrealm.conf');
  writeFileSync(config, `AUTHREALM_DATABASE=${url}\nAUTHREALM_MIGRATE=check\nOTHER=1\n`, { mode: 0o600 });
  expect((await runAuthrealm(['init', '--database', url])).code).toBe(0);
  const list = (words: readonly string[], environment = {}) =>
    runAuthrealm(['client', 'list', '--json', ...words], environment);
  const NOTICE = `authrealm: using settings from ${config}\n`;

  test('a command takes its settings from the file that is named, and prints its path once', async () => {
    for (const [words, environment] of [
      [['--config', config], {}],
      [[], { AUTHREALM_CONFIG: config }],
    ] as const) {
      const { code, stdout, stderr } = await list(words, environment);
      expect([code, stdout, stderr]).toEqual([0, expect.stringContaining('client_id'), NOTICE]);
    }
  });

  test('a flag wins over the environment, and that over the file', async () => {
    const other = 'sqlite:/nowhere/at-all.db';
    const byFlag = ['--config', config, '--database', url];
    expect((await list(byFlag, { AUTHREALM_DATABASE: other })).code).toBe(0);
    const byVariable = await list(['--config', config], { AUTHREALM_DATABASE: other });
    expect([byVariable.code, byVariable.stderr]).toEqual([1, expect.stringContaining('/nowhere/at-all.db')]);
    const unused = { AUTHREALM_DATABASE: url, AUTHREALM_MIGRATE: 'check' };
    expect((await list(['--config', config], unused)).stderr).toBe('');
  });

  test('doctor names the settings of the file', async () => {
    const { stdout } = await runAuthrealm(['doctor', '--config', config]);
    expect(stdout).toContain(`AUTHREALM_DATABASE = ${url} (file)`);
  });

  test('a mistake in the file is reported as one of the environment', async () => {
    const wrong = join(freshFolder(), 'wrong.conf');
    writeFileSync(wrong, 'AUTHREALM_PROT=1\nAUTHREALM_PORT=x\n', { mode: 0o600 });
    const { code, stderr } = await runAuthrealm(['ready', '--config', wrong]);
    expect([code, stderr]).toEqual([
      2,
      `authrealm: using settings from ${wrong}\nauthrealm: AUTHREALM_PROT is not a variable of authrealm: see --help of the command for the list\nauthrealm: AUTHREALM_PORT must be a number from 0 to 65535\n`,
    ]);
  });

  test('a file that others may write, that cannot be read or that is missing is refused', async () => {
    const open = join(freshFolder(), 'open.conf');
    writeFileSync(open, '');
    chmodSync(open, 0o620);
    const refusalOf = async (path: string) => (await list(['--config', path])).stderr;
    expect(await refusalOf(open)).toBe(
      `authrealm: other users may write the settings file ${open}: run chmod go-w\n`,
    );
    expect(await refusalOf('/nowhere/x.conf')).toMatch(
      /^authrealm: the settings file \/nowhere\/x\.conf cannot be read: /,
    );
    chmodSync(open, 0o000);
    const { stderr } = await runCommand([...AUTHREALM_UNPRIVILEGED, 'client', 'list', '--config', open]);
    expect(stderr).toMatch(/^authrealm: the settings file .*open\.conf cannot be read: /);
  });
});
