import { Command, CommanderError } from 'commander';
import type { Environment } from '../app/config/parse.ts';
import { Refusal } from '../model/fault.ts';
import { VERSION } from '../model/version.ts';
import { EXIT, printRefusal } from '../ops/process/exit.ts';
import { isUnread, type StandardStreams, withStandardStreams } from '../ops/process/standard_streams.ts';
import { toRefusal } from '../sql/refusals.ts';
import { type CliContext, openSettings } from './context.ts';
import { completeHelp } from './help.ts';
import { OutputUnread } from './output.ts';

/** Commands of one module, by their names. The module is imported when `load` is called. */
interface CommandModule {
  readonly names: readonly string[];
  load(): Promise<(program: Command, context: CliContext) => void>;
}

/** All commands in the order of the help text. */
const COMMANDS: readonly CommandModule[] = [
  { names: ['serve', 'worker'], load: async () => (await import('./serve.ts')).addServe },
  { names: ['init'], load: async () => (await import('./init.ts')).addInit },
  { names: ['client'], load: async () => (await import('./clients.ts')).addClientCommands },
  { names: ['console'], load: async () => (await import('./console.ts')).addConsoleCommands },
  { names: ['keys'], load: async () => (await import('./keys.ts')).addKeyCommands },
  { names: ['webhook'], load: async () => (await import('./webhooks.ts')).addWebhookCommands },
  { names: ['migrate'], load: async () => (await import('./migrate.ts')).addMigrate },
  { names: ['import'], load: async () => (await import('./import.ts')).addImport },
  { names: ['export'], load: async () => (await import('./export.ts')).addExport },
  { names: ['copy'], load: async () => (await import('./copy.ts')).addCopy },
  { names: ['backup'], load: async () => (await import('./backup.ts')).addBackup },
  { names: ['restore'], load: async () => (await import('./restore.ts')).addRestore },
  { names: ['compact'], load: async () => (await import('./compact.ts')).addCompact },
  { names: ['demo'], load: async () => (await import('./demo.ts')).addDemo },
  { names: ['doctor'], load: async () => (await import('./doctor.ts')).addDoctor },
  { names: ['ready'], load: async () => (await import('./ready.ts')).addReady },
  { names: ['audit'], load: async () => (await import('./audit.ts')).addAuditCommands },
  { names: ['log'], load: async () => (await import('./audit.ts')).addLog },
  { names: ['erase'], load: async () => (await import('./erase.ts')).addErase },
  { names: ['subject-access'], load: async () => (await import('./subject_access.ts')).addSubjectAccess },
  {
    names: ['get', 'list', 'find', 'create', 'update'],
    load: async () => (await import('./records.ts')).addRecordCommands,
  },
  { names: ['delete'], load: async () => (await import('./deletion.ts')).addDelete },
];

/** Runs a command line, by default on the standard streams of the process, and returns its exit code. */
export function runCli(
  argv: readonly string[],
  environment: Environment,
  streams?: StandardStreams,
): Promise<number> {
  // The stream also reports a reader that is gone, of `… | head`, after a write has returned.
  if (streams === undefined) process.stdout.on('error', throwUnlessUnread);
  return withStandardStreams(streams, async () => {
    let code: number = EXIT.done;
    const setExitCode = (outcome: number) => {
      code = outcome;
    };
    // The modules of the other commands are not loaded.
    const named = COMMANDS.filter(({ names }) => names.includes(argv[0] ?? ''));
    const program = await createProgram(environment, setExitCode, named.length > 0 ? named : COMMANDS);
    try {
      await program.parseAsync(argv, { from: 'user' });
    } catch (error) {
      code = exitCodeOf(error);
    }
    return code;
  });
}

/** All commands, or those given, each with its options. */
export async function createProgram(
  environment: Environment,
  setExitCode: (outcome: number) => void,
  commands: readonly CommandModule[] = COMMANDS,
): Promise<Command> {
  const program = new Command('authrealm')
    .description('The self-hosted directory of identity links.')
    .version(VERSION)
    .exitOverride()
    .addHelpText(
      'after',
      `
Exit codes: ${EXIT.done} success; ${EXIT.failed} failure; ${EXIT.usage} invalid command line or setting;
  ${EXIT.linesRefused} the import finished, but rejected some lines.`,
    );
  const context: CliContext = { ...openSettings(environment), setExitCode };
  for (const { load } of commands) (await load())(program, context);
  completeHelp(program);
  return program;
}

function throwUnlessUnread(error: Error): void {
  if (!isUnread(error)) throw error;
}

/**
 * Prints why a command failed, also by an error of the database or the operating system, and returns its exit code. An unexpected
 * error is a bug: it is thrown again, with its stack.
 */
function exitCodeOf(error: unknown): number {
  if (error instanceof OutputUnread) return EXIT.failed;
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const refusal = toRefusal(error);
  if (refusal instanceof Refusal) return printRefusal(refusal);
  const { syscall, message } = error as NodeJS.ErrnoException;
  if (syscall === undefined) throw error;
  return printRefusal(new Refusal(message));
}
