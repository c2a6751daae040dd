import { Command, CommanderError } from 'commander';
import { Refusal } from '../domain/fault.ts';
import { EXIT, printRefusal } from '../platform/exit.ts';
import { VERSION } from '../platform/version.ts';
import { toRefusal } from '../store/open.ts';
import { addAuditCommands } from './audit.ts';
import { addBackup } from './backup.ts';
import { addClientCommands } from './clients.ts';
import { addCompact } from './compact.ts';
import { CLIENT_SECRET_VARIABLE } from './connection.ts';
import { addConsoleCommands } from './console.ts';
import { type Environment, openContext } from './context.ts';
import { addCopy } from './copy.ts';
import { addDemo } from './demo.ts';
import { addDoctor } from './doctor.ts';
import { addErase } from './erase.ts';
import { addExport } from './export.ts';
import { addImport } from './import.ts';
import { addInit } from './init.ts';
import { addKeyCommands } from './keys.ts';
import { addMigrate } from './migrate.ts';
import { addPurge } from './purge.ts';
import { addRecordCommands } from './records.ts';
import { addRestore } from './restore.ts';
import { addServe } from './serve.ts';
import { addSubjectAccess } from './subject_access.ts';
import { nameVariables, withVariables } from './variables.ts';
import { addWebhookCommands } from './webhooks.ts';

/** Runs a command line and returns its exit code. */
export async function runCommandLine(argv: readonly string[], environment: Environment): Promise<number> {
  let code: number = EXIT.done;
  const setExitCode = (outcome: number) => {
    code = outcome;
  };
  const program = createProgram(argv, environment, setExitCode);
  try {
    await program.parseAsync(withVariables(program, argv, environment), { from: 'user' });
  } catch (error) {
    code = exitCodeOf(error);
  }
  return code;
}

/** All commands, each with its options and their environment variables. */
export function createProgram(
  argv: readonly string[],
  environment: Environment,
  setExitCode: (outcome: number) => void,
): Command {
  const program = new Command('authrealm')
    .description('The self-hosted directory of identity links.')
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError()
    .addHelpText('after', exitCodes());
  const context = openContext(environment, () => variables);
  addServe(program, context);
  addInit(program, context);
  addClientCommands(program, context);
  addConsoleCommands(program, context);
  addKeyCommands(program, context);
  addWebhookCommands(program, context);
  addMigrate(program, context);
  addImport(program, context, setExitCode);
  addExport(program, context);
  addCopy(program, argv);
  addBackup(program, context);
  addRestore(program, context);
  addCompact(program, context);
  addPurge(program, context);
  addDemo(program, context);
  addDoctor(program, context, setExitCode);
  addAuditCommands(program, context, setExitCode);
  addErase(program, context);
  addSubjectAccess(program, context);
  addRecordCommands(program, context, environment[CLIENT_SECRET_VARIABLE]);
  const variables = [...nameVariables(program), CLIENT_SECRET_VARIABLE];
  return program;
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
