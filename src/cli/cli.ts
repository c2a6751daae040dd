import { Command, CommanderError } from 'commander';
import { unknownVariables } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { EXIT, printRefusal } from '../platform/exit.ts';
import { VERSION } from '../platform/version.ts';
import { toRefusal } from '../store/refusals.ts';
import { type CliContext, type Environment, openContext } from './context.ts';
import { completeHelp } from './help.ts';
import { CLIENT_SECRET_VARIABLE, nameVariables, withVariables } from './variables.ts';

/** What a command is added to, and what it gets. */
interface CommandDeps {
  readonly program: Command;
  readonly context: CliContext;
  readonly argv: readonly string[];
  readonly clientSecret: string | undefined;
  setExitCode(outcome: number): void;
}

/** Commands of one module, by their names. The module is imported when `add` is called. */
interface CommandModule {
  readonly names: readonly string[];
  add(deps: CommandDeps): Promise<void>;
}

/** All commands in the order of the help text. */
const COMMANDS: readonly CommandModule[] = [
  {
    names: ['serve', 'worker'],
    add: async ({ program, context }) => (await import('./serve.ts')).addServe(program, context),
  },
  {
    names: ['init'],
    add: async ({ program, context }) => (await import('./init.ts')).addInit(program, context),
  },
  {
    names: ['client'],
    add: async ({ program, context }) => (await import('./clients.ts')).addClientCommands(program, context),
  },
  {
    names: ['console'],
    add: async ({ program, context }) => (await import('./console.ts')).addConsoleCommands(program, context),
  },
  {
    names: ['keys'],
    add: async ({ program, context }) => (await import('./keys.ts')).addKeyCommands(program, context),
  },
  {
    names: ['webhook'],
    add: async ({ program, context }) => (await import('./webhooks.ts')).addWebhookCommands(program, context),
  },
  {
    names: ['migrate'],
    add: async ({ program, context }) => (await import('./migrate.ts')).addMigrate(program, context),
  },
  {
    names: ['import'],
    add: async ({ program, context, setExitCode }) =>
      (await import('./import.ts')).addImport(program, context, setExitCode),
  },
  {
    names: ['export'],
    add: async ({ program, context }) => (await import('./export.ts')).addExport(program, context),
  },
  {
    names: ['copy'],
    add: async ({ program, argv }) => (await import('./copy.ts')).addCopy(program, argv),
  },
  {
    names: ['backup'],
    add: async ({ program, context }) => (await import('./backup.ts')).addBackup(program, context),
  },
  {
    names: ['restore'],
    add: async ({ program, context }) => (await import('./restore.ts')).addRestore(program, context),
  },
  {
    names: ['compact'],
    add: async ({ program, context }) => (await import('./compact.ts')).addCompact(program, context),
  },
  {
    names: ['purge'],
    add: async ({ program, context }) => (await import('./purge.ts')).addPurge(program, context),
  },
  {
    names: ['demo'],
    add: async ({ program, context }) => (await import('./demo.ts')).addDemo(program, context),
  },
  {
    names: ['doctor'],
    add: async ({ program, context, setExitCode }) =>
      (await import('./doctor.ts')).addDoctor(program, context, setExitCode),
  },
  {
    names: ['ready'],
    add: async ({ program, context }) => (await import('./ready.ts')).addReady(program, context),
  },
  {
    names: ['audit'],
    add: async ({ program, context, setExitCode }) =>
      (await import('./audit.ts')).addAuditCommands(program, context, setExitCode),
  },
  {
    names: ['erase'],
    add: async ({ program, context }) => (await import('./erase.ts')).addErase(program, context),
  },
  {
    names: ['subject-access'],
    add: async ({ program, context }) =>
      (await import('./subject_access.ts')).addSubjectAccess(program, context),
  },
  {
    names: ['check'],
    add: async ({ program, clientSecret, setExitCode }) =>
      (await import('./check.ts')).addCheck(program, clientSecret, setExitCode),
  },
  {
    names: ['get', 'list', 'find', 'create', 'update', 'delete'],
    add: async ({ program, context, clientSecret }) =>
      (await import('./records.ts')).addRecordCommands(program, context, clientSecret),
  },
];

/** Runs a command line and returns its exit code. */
export async function runCommandLine(argv: readonly string[], environment: Environment): Promise<number> {
  let code: number = EXIT.done;
  const setExitCode = (outcome: number) => {
    code = outcome;
  };
  const program = await programFor(argv, environment, setExitCode);
  try {
    await program.parseAsync(withVariables(program, argv, environment), { from: 'user' });
  } catch (error) {
    code = exitCodeOf(error);
  }
  return code;
}

/**
 * The program with the command that the first word names, so that the modules of the others are not loaded. It has all
 * commands where the word names none, and where the environment sets an option of another command, which is no mistake.
 */
async function programFor(
  argv: readonly string[],
  environment: Environment,
  setExitCode: (outcome: number) => void,
): Promise<Command> {
  const named = COMMANDS.filter(({ names }) => names.includes(argv[0] ?? ''));
  if (named.length > 0) {
    const program = await createProgram(argv, environment, setExitCode, named);
    if (unknownVariables(environment, variablesOf(program)).length === 0) return program;
  }
  return createProgram(argv, environment, setExitCode);
}

/** All commands, or those given, each with its options and their environment variables. */
export async function createProgram(
  argv: readonly string[],
  environment: Environment,
  setExitCode: (outcome: number) => void,
  commands: readonly CommandModule[] = COMMANDS,
): Promise<Command> {
  const program = new Command('authrealm')
    .description('The self-hosted directory of identity links.')
    .version(VERSION)
    .exitOverride()
    .addHelpText('after', exitCodes());
  const context = openContext(environment, () => variablesOf(program));
  const clientSecret = environment[CLIENT_SECRET_VARIABLE];
  for (const { add } of commands) await add({ program, context, argv, clientSecret, setExitCode });
  nameVariables(program);
  completeHelp(program);
  return program;
}

/** The environment variables of all options of the program that are not settings. */
function variablesOf(program: Command): readonly string[] {
  return [...nameVariables(program), CLIENT_SECRET_VARIABLE];
}

/** Prints why a command failed and returns its exit code. An unexpected error is a bug: it is thrown again, with its stack. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const refusal = asRefusal(error);
  if (!refusal) throw error;
  return printRefusal(refusal);
}

/** An error of the database or the operating system as one sentence; undefined for a bug. */
function asRefusal(error: unknown): Refusal | undefined {
  const refusal = toRefusal(error);
  if (refusal instanceof Refusal) return refusal;
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? undefined : new Refusal(message);
}

function exitCodes(): string {
  return `
Exit codes: ${EXIT.done} success; ${EXIT.failed} failure; ${EXIT.usage} invalid command line or setting;
  ${EXIT.linesRefused} the import finished, but rejected some lines.`;
}
