import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { workerCommand } from '../../src/ops/workers/command.ts';
import { findPort } from '../support/daemons.ts';
import { freshDatabase } from '../support/database.ts';
import { createHostileFolder } from '../support/hostile_folder.ts';
import { childrenOf, readProc } from '../support/process_tree.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** What the launcher passes to Bun: no configuration of the working directory, which another user may control. */

const DATABASE = ['--database', 'sqlite:none.db'];

const { executed, inFolder } = createHostileFolder();

/** The command lines of the child processes of a process. */
function childCommands(pid: number): readonly (readonly string[])[] {
  return childrenOf(pid).map((child) => readProc(`/proc/${child}/cmdline`).split('\0').slice(0, -1));
}

describe('the working directory of a command', () => {
  test('a runtime without our options reads the configuration of the working directory', async () => {
    const { stdout } = await runCommand(inFolder(process.execPath, '-p', 'process.env.AUTHREALM_URL'));
    expect(stdout).toContain('http://elsewhere.example');
    expect(existsSync(executed)).toBe(true);
    rmSync(executed);
    const main = join(import.meta.dir, '../../src/main.ts');
    const options = ['--no-env-file', '--config=/dev/null'];
    await runCommand(inFolder(process.execPath, ...options, main, '--version'));
    expect(existsSync(executed)).toBe(true);
    rmSync(executed);
  });

  test('a command ignores the configuration of the working directory', async () => {
    const { stdout, stderr, code } = await runCommand(inFolder(AUTHREALM, 'client', 'list', ...DATABASE));
    expect([stdout, stderr, code]).toEqual([
      '',
      expect.stringContaining('database none.db is missing or empty'),
      1,
    ]);
    expect(existsSync(executed)).toBe(false);
  });

  test('worker processes ignore the configuration of the working directory and refuse to be started by hand', async () => {
    for (const role of ['hasher', 'reader'] as const) {
      const { stderr, code } = await runCommand(inFolder(...workerCommand(role)));
      expect([stderr, code]).toEqual(['authrealm: this command is started by the program itself\n', 2]);
    }
    expect(existsSync(executed)).toBe(false);
  });

  test('serving processes ignore the configuration of the working directory', async () => {
    const service = startCommand(
      inFolder(AUTHREALM, 'serve', '--port', String(findPort()), '--processes', '2'),
    );
    await service.line(/^listening on /);
    const commands = childCommands(service.process.pid);
    expect(commands).toHaveLength(2);
    const prefix = workerCommand('worker');
    for (const words of commands) expect(words.slice(0, prefix.length)).toEqual([...prefix]);
    expect(await service.stop()).toBe(0);
    expect(existsSync(executed)).toBe(false);
  });

  test('the start and demo scripts of the package run the launcher', () => {
    const text = readFileSync(join(import.meta.dir, '../../package.json'), 'utf8');
    const { start: serve, demo } = (JSON.parse(text) as { scripts: Record<string, string> }).scripts;
    expect([serve, demo]).toEqual(['bin/authrealm serve', 'bin/authrealm demo']);
  });
});

test.each([
  ['1 by default', {}, '1'],
  ['the value of the environment', { BUN_JSC_heapGrowthMaxIncrease: '1.5' }, '1.5'],
])(
  'a service and its serving processes run with heapGrowthMaxIncrease as %s',
  async (_, environment, value) => {
    const options = { database: await freshDatabase(), scope: 'admin', flags: ['--processes', '2'] };
    const { running } = await startServiceProcess({ ...options, environment });
    const { pid } = running.process;
    const variables = [pid, ...childrenOf(pid)].map((each) => readProc(`/proc/${each}/environ`).split('\0'));
    expect(variables).toHaveLength(3);
    for (const each of variables) expect(each).toContain(`BUN_JSC_heapGrowthMaxIncrease=${value}`);
    expect(await running.stop()).toBe(0);
  },
);

test.each([
  [0, ['--version']],
  [1, ['client', 'list', ...DATABASE]],
  [2, ['client', 'lost']],
  [3, ['import', '-', '--on-error', 'skip', '--database', (await freshDatabase('sqlite')).url]],
])('the process of a command exits with its code %i', async (code, words) => {
  expect((await runCommand([AUTHREALM, ...words], {}, '{}\n')).code).toBe(code);
});
