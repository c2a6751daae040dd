import type { Refusal } from '../../model/fault.ts';
import { printNotice } from './standard_streams.ts';

/** Exit codes, the same for every command. The comment of a code is its description in docs/reference/cli.md. */
export const EXIT = Object.freeze({
  /** The command succeeded. */
  done: 0,
  /** The command failed; standard error says why and what to do. `doctor` and `audit verify`: there is a finding. */
  failed: 1,
  /** The command line or a setting is invalid; standard error names every mistake. */
  usage: 2,
  /** The import finished, but rejected some lines. */
  linesRefused: 3,
});

/** Prints a refusal to standard error and returns the exit code. */
export function printRefusal({ message, isUsage }: Refusal): number {
  for (const line of message.split('\n')) printNotice(`authrealm: ${line}`);
  return isUsage ? EXIT.usage : EXIT.failed;
}
