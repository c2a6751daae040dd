import { expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import { atEnd } from '../support/ending.ts';
import { AUTHREALM, startCommand } from '../support/processes.ts';

const TEXT = /^\S+Z INFO started url=http:\/\/\S+ version=\S+ engine=sqlite pid=\d+\r?$/;
const JSON_LINE = /^\{"level":30,"time":"\S+Z","event":"started","url":"http:\S+\r?$/;

test.each([
  ['text for a terminal', 'script', '', TEXT],
  ['JSON for a file', 'sh', '', JSON_LINE],
  ['JSON for a terminal with --log-format json', 'script', '--log-format json', JSON_LINE],
  ['text for a file with --log-format text', 'sh', '--log-format text', TEXT],
])('serve logs %s', async (_, shell, flags, line) => {
  const { args } = await freshDatabase('sqlite');
  const command = ['exec', AUTHREALM, 'serve', '--port', '0', ...args, flags].join(' ');
  // `script` gives the command a terminal; the shell sends standard error to standard output.
  const words =
    shell === 'script' ? ['script', '-qec', command, '/dev/null'] : ['sh', '-c', `${command} 2>&1`];
  const service = startCommand(words);
  atEnd(() => service.stop());
  expect(await service.line(line)).toMatch(line);
});
