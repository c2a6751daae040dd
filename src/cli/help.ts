import type { Command } from 'commander';
import { printNotice, standardStreams } from '../ops/process/standard_streams.ts';
import { examplesOf } from './examples.ts';

/** Adds examples to the help texts of a command and its subcommands, and makes usage errors one line that names the help. */
export function completeHelp(command: Command, words = ''): void {
  const examples = examplesOf(words);
  if (examples.length > 0) {
    const heading = examples.length === 1 ? 'Example:' : 'Examples:';
    command.addHelpText('after', ['', heading, ...examples.map((each) => `  ${each}`)].join('\n'));
  }
  const help = ['authrealm', words, '--help'].filter(Boolean).join(' ');
  command.configureOutput({
    writeOut: (text) => standardStreams().stdout.write(text),
    writeErr: (text) => standardStreams().stderr.write(text),
    outputError(text) {
      // One line, also with the suggestion of commander in a second one.
      const [message = '', suggestion] = text.trim().split('\n');
      const what = [message.replace(/^error: /, '').replace(/\.$/, ''), suggestion].filter(Boolean).join(' ');
      printNotice(`authrealm: ${what}; see "${help}"`);
    },
  });
  for (const child of command.commands) completeHelp(child, `${words} ${child.name()}`.trim());
}
