import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/cli.ts';
import { EXAMPLES } from '../../src/cli/examples.ts';
import { openProgress } from '../../src/cli/progress.ts';
import { AUTHREALM, runAuthrealm, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** What the command line shows to people: help texts with examples, and output without alarm. */

const ID = '01234567-89ab-cdef-0123-456789abcdef';

/** The words into which a shell splits an example, with an ID for every variable. */
async function wordsOf(example: string): Promise<readonly string[]> {
  const variables = { REALM: ID, USER: ID, CLIENT: ID, WEBHOOK: ID, KEY: 'k1', SESSION: ID, PROFILE: ID };
  const script = `authrealm() { printf '%s\\0' "$@"; }; ${example}`;
  const { stdout, code } = await runCommand(['sh', '-euc', script], variables);
  expect(code).toBe(0);
  return stdout.split('\0').slice(0, -1);
}

/** The commands that have an action, by their words. */
function leavesOf(command: Command, words: readonly string[] = []): readonly [string, Command][] {
  if (command.commands.length === 0) return [[words.join(' '), command]];
  return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]));
}

const program = await createProgram({}, () => undefined);
const visible = leavesOf(program).filter(([words]) => words !== 'worker');

describe('examples', () => {
  test('every command has an example, and every example a command', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual(visible.map(([words]) => words).sort());
  });

  test.each(Object.entries(EXAMPLES))('the example of %s is a valid command line', async (words, example) => {
    expect(example).toStartWith(`authrealm ${words}`);
    const parsing = await createProgram({}, () => undefined);
    let ran = '';
    for (const [name, leaf] of leavesOf(parsing)) {
      leaf.action(() => {
        ran = name;
      });
    }
    await parsing.parseAsync([...(await wordsOf(example))], { from: 'user' });
    expect(ran).toBe(words);
  });

  test.each(['', 'client', 'keys', 'audit', ...visible.map(([words]) => words)])(
    'the help of "authrealm %s" ends with an example',
    async (words) => {
      const { stdout, code } = await runAuthrealm([...words.split(' ').filter(Boolean), '--help']);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/\nExamples?:\n( {2}authrealm .+\n){1,3}$/)]);
    },
  );
});

test('the help of serve lists its settings in groups, and only --help outside of them', async () => {
  const { stdout } = await runAuthrealm(['serve', '--help']);
  const headings = [...stdout.matchAll(/^(\S.*):$/gm)].map(([, heading]) => heading);
  expect(headings.slice(0, 3)).toEqual(['Database', 'Listener', 'Reverse proxy']);
  expect(headings.length).toBeGreaterThan(9);
  const [, others = ''] = /^Options:\n((?: .*\n)+)/m.exec(stdout) ?? [];
  expect(others.match(/^ {2}-/gm)).toHaveLength(1);
  expect(others).toContain('--help');
});

/** Runs a command on a terminal (script of util-linux) and returns what it shows. */
async function shownOnTerminal(...words: readonly string[]): Promise<string> {
  const command = [AUTHREALM, ...words].map((word) => `'${word}'`).join(' ');
  const { stdout } = await runCommand(['script', '-qec', command, '/dev/null'], { TERM: 'xterm-256color' });
  return stdout;
}

describe('output on a terminal', async () => {
  const folder = freshFolder();
  const database = join(folder, 'a.db');
  expect((await runAuthrealm(['init', '--database', database])).code).toBe(0);

  test('what a command reports on standard error has no colour', async () => {
    const shown = await shownOnTerminal('export', join(folder, 'out.jsonl'), '--database', database);
    expect(shown).toContain('exported ');
    expect(shown).not.toContain('\u001b[3');
    const refused = await shownOnTerminal('export', join(folder, 'out.jsonl'), '--database', database);
    expect(refused).toContain('it exists, and is never overwritten');
    expect(refused).not.toContain('\u001b[3');
  });

  test('a long command prints the number of records every five seconds', () => {
    let shown = '';
    const stream = { write: (text: string) => (shown += text) } as never;
    let now = 0;
    const show = openProgress({ monotonic: () => now }, stream);
    for (const records of [1, 12, 13, 24]) {
      show(records);
      now += records === 12 ? 1_000 : 5_000;
    }
    expect(shown).toBe('12 records\n24 records\n');
  });
});

test('a path is understood as a SQLite file', async () => {
  const folder = freshFolder();
  const database = join(folder, 'plain.db');
  expect((await runAuthrealm(['init', '--database', database])).code).toBe(0);
  expect(existsSync(database)).toBe(true);
  const relative = ['sh', '-c', `cd '${folder}' && '${AUTHREALM}' client list --database plain.db`];
  expect((await runCommand(relative)).stdout).toContain('first');
});

test('doctor begins with its verdict, which names the checks that found a problem', async () => {
  const database = join(freshFolder(), 'checked.db');
  await runAuthrealm(['init', '--database', database]);
  const healthy = await runAuthrealm(['doctor', '--database', database]);
  expect([healthy.code, healthy.stdout]).toEqual([0, expect.stringMatching(/^healthy\n/)]);
  await runCommand(['chmod', '644', database]);
  const found = await runAuthrealm(['doctor', '--database', database]);
  const verdict = /^not healthy: 1 of \d+ checks reported problems, marked ! below: files\n/;
  expect([found.code, found.stdout]).toEqual([1, expect.stringMatching(verdict)]);
});

test('doctor says once that a database does not exist, and runs no check of one', async () => {
  const database = join(freshFolder(), 'none.db');
  const { stdout, code } = await runAuthrealm(['doctor', '--database', database]);
  expect([code, stdout.match(/there is no database/g)]).toEqual([1, ['there is no database']]);
  expect(stdout).toMatch(/^not healthy: 1 of 3 checks .*: program\n/);
});
