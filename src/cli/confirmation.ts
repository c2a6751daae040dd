import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { Refusal } from '../model/fault.ts';
import { standardStreams } from '../ops/process/standard_streams.ts';

export interface ConfirmationOptions {
  readonly yes?: true;
  readonly dryRun?: true;
}

/** Adds the options of a command that destroys data. */
export function addConfirmation(command: Command, dryRun: string): Command {
  return command.option('--yes', 'do not ask for confirmation').option('--dry-run', dryRun);
}

/**
 * Asks on a terminal for `word`, because `y` is typed too easily. Where standard input is no terminal, `--yes` is required. Throws
 * Refusal without a confirmation. `consequence` is what the command does.
 */
export async function assertConfirmed(
  { yes }: ConfirmationOptions,
  consequence: string,
  word: string,
): Promise<void> {
  if (yes) return;
  if (!standardStreams().stdin.isTTY || !standardStreams().stderr.isTTY) {
    throw new Refusal(`this ${consequence}: pass --yes to confirm`, { isUsage: true });
  }
  const terminal = createInterface({ input: standardStreams().stdin, output: standardStreams().stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([
      terminal.question(`This ${consequence}. Type ${word} to confirm: `),
      closed,
    ]);
    if (answer.trim() !== word) throw new Refusal('not confirmed: nothing was changed');
  } finally {
    terminal.close();
  }
}
