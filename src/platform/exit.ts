import type { Refusal } from '../domain/fault.ts';

/** Exit codes, the same for every command. */
export const EXIT = Object.freeze({
  done: 0,
  /** The command could not do its work; standard error says why and what to do. */
  failed: 1,
  /** The command line or a setting is not right; standard error names every mistake. */
  usage: 2,
  /** An import ended, and some of its lines were refused. */
  linesRefused: 3,
});

/** Says on standard error what stood in the way, and answers the exit code. */
export function tellRefusal({ message, isUsage }: Refusal): number {
  for (const line of message.split('\n')) console.error(`authrealm: ${line}`);
  return isUsage ? EXIT.usage : EXIT.failed;
}
