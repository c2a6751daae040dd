import { beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { workerCommand } from '../../src/workers/command.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { freePort, freshFolder } from '../support/service.ts';

/** What a command takes from the folder it is started in: nothing. The folder may be anybody's. */

/** Code that is not ours, and tells that it was run. */
const FOREIGN = "require('node:fs').appendFileSync(__dirname.split('/node_modules')[0] + '/marks', 'x');\n";
const ELSEWHERE = { compilerOptions: { baseUrl: '.', paths: { '*': ['./foreign.js'] } } };

/** Each file by which a folder can have a say in what the runtime does there. */
const FILES: Readonly<Record<string, string>> = {
  '.env': 'AUTHREALM_PORTS=1\nAUTHREALM_URL=http://elsewhere.example\n',
  '.env.local': 'AUTHREALM_HOSTS=1\n',
  '.env.production': 'AUTHREALM_HOSTS=1\n',
  '.env.development': 'AUTHREALM_HOSTS=1\n',
  'bunfig.toml': 'preload = ["./foreign.js"]\n',
  'tsconfig.json': JSON.stringify(ELSEWHERE),
  'jsconfig.json': JSON.stringify(ELSEWHERE),
  'package.json': JSON.stringify({ name: 'foreign', main: './foreign.js' }),
  'foreign.js': FOREIGN,
};

const DATABASE = ['--database', 'sqlite:none.db', '--migrate', 'off'];

let folder: string;
/** Written to by whatever of the folder was run. */
let marks: string;

beforeAll(() => {
  folder = freshFolder();
  marks = join(folder, 'marks');
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  for (const name of ['zod', 'commander', 'pino']) {
    mkdirSync(join(folder, 'node_modules', name), { recursive: true });
    writeFileSync(join(folder, 'node_modules', name, 'index.js'), FOREIGN);
  }
});

/** A command in the folder, by a shell that goes there first. */
const inFolder = (...command: readonly string[]) => [
  '/bin/sh',
  '-c',
  'cd "$0" && exec "$@"',
  folder,
  ...command,
];

/** The command lines of the processes right below one. */
function below(pid: number): readonly (readonly string[])[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return children.map((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0').slice(0, -1));
}

describe('the folder in which a command starts', () => {
  test('has a say, where the runtime is started without more', async () => {
    const { stdout } = await runCommand(inFolder(process.execPath, '-p', 'process.env.AUTHREALM_URL'));
    expect(stdout).toContain('http://elsewhere.example');
    expect(existsSync(marks)).toBe(true);
    rmSync(marks);
    const main = join(import.meta.dir, '../../src/main.ts');
    const options = ['--no-env-file', '--config=/dev/null'];
    await runCommand(inFolder(process.execPath, ...options, main, '--version'));
    expect(existsSync(marks)).toBe(true);
    rmSync(marks);
  });

  test('changes nothing for a command', async () => {
    const { stdout, stderr, code } = await runCommand(inFolder(AUTHREALM, 'client', 'list', ...DATABASE));
    expect([stdout, stderr, code]).toEqual(['', expect.stringContaining('there is no database yet'), 1]);
    expect(existsSync(marks)).toBe(false);
  });

  test('changes nothing for the processes beside the service, which say whose they are', async () => {
    for (const role of ['hasher', 'reader', 'searcher', 'archiver'] as const) {
      const { stderr, code } = await runCommand(inFolder(...workerCommand(role)));
      expect([stderr, code]).toEqual(['authrealm: this command is started by the program itself\n', 2]);
    }
    expect(existsSync(marks)).toBe(false);
  });

  test('changes nothing for the processes that share the port', async () => {
    const served = startCommand(
      inFolder(AUTHREALM, 'serve', '--port', String(await freePort()), '--processes', '2'),
    );
    await served.line(/^listening on /);
    const commands = below(served.process.pid);
    expect(commands).toHaveLength(2);
    const beginning = workerCommand('worker');
    for (const words of commands) expect(words.slice(0, beginning.length)).toEqual([...beginning]);
    expect(await served.stop()).toBe(0);
    expect(existsSync(marks)).toBe(false);
  });

  test('is no way into the scripts of the package either', () => {
    const text = readFileSync(join(import.meta.dir, '../../package.json'), 'utf8');
    const { start: serve, demo } = (JSON.parse(text) as { scripts: Record<string, string> }).scripts;
    expect([serve, demo]).toEqual(['bin/authrealm serve', 'bin/authrealm demo']);
  });
});
