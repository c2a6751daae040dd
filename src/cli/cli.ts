import { Command, CommanderError, Option } from 'commander';
import {
  DATABASE_SETTINGS,
  type Flags,
  originsOf,
  readSettings,
  SETTINGS,
  type SettingName,
  type SettingOrigin,
  type Settings,
} from '../config.ts';
import { Refusal } from '../domain/fault.ts';
import { EXIT, tellRefusal } from '../exit.ts';
import { refusalOf } from '../store/open.ts';
import { VERSION } from '../version.ts';
import { addAuditCommands } from './audit.ts';
import { addBackup } from './backup.ts';
import { addClientCommands } from './clients.ts';
import { CLIENT_SECRET_VARIABLE } from './connection.ts';
import { addConsoleCommands } from './console.ts';
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

type Environment = Readonly<Record<string, string | undefined>>;

/** What a command gets beside its own arguments. */
export interface Desk {
  /** Reads the settings from the command's flags and the environment. */
  settingsOf(command: Command): Settings;
  /** The same for a command that listens: what its address needs is judged as well. */
  listeningSettingsOf(command: Command): Settings;
  /** Every setting as the service would have it, and who says so. */
  originsOf(command: Command): readonly SettingOrigin[];
  /** The flags of a command that are settings, as they were written. */
  flagsOf(command: Command): Flags;
  /** How the operator calls this program: by name, or through npx inside a clone. */
  readonly programName: string;
}

/** Runs a command line and answers its exit code. */
export async function run(argv: readonly string[], environment: Environment): Promise<number> {
  let code: number = EXIT.done;
  const desk: Desk = {
    flagsOf,
    originsOf: (command) => originsOf(flagsOf(command), environment),
    settingsOf: (command) =>
      readSettings(flagsOf(command), withStandards(command, environment), { otherNames: variables }),
    listeningSettingsOf: (command) =>
      readSettings(flagsOf(command), withStandards(command, environment), {
        otherNames: variables,
        listens: true,
      }),
    programName: environment.npm_command === 'exec' ? 'npx authrealm' : 'authrealm',
  };
  const program = new Command('authrealm')
    .description('The self-hosted directory of identity links.')
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError()
    .addHelpText('after', exitCodes());
  const end = (outcome: number) => {
    code = outcome;
  };
  addServe(program, desk);
  addInit(program, desk);
  addClientCommands(program, desk);
  addConsoleCommands(program, desk);
  addKeyCommands(program, desk);
  addWebhookCommands(program, desk);
  addMigrate(program, desk);
  addImport(program, desk, end);
  addExport(program, desk);
  addCopy(program, argv);
  addBackup(program, desk);
  addRestore(program, desk);
  addPurge(program, desk);
  addDemo(program, desk);
  addDoctor(program, desk, end);
  addAuditCommands(program, desk, end);
  addErase(program, desk);
  addSubjectAccess(program, desk);
  addRecordCommands(program, desk, environment[CLIENT_SECRET_VARIABLE]);
  const variables = [...nameVariables(program), CLIENT_SECRET_VARIABLE];
  try {
    await program.parseAsync(withVariables(program, argv, environment), { from: 'user' });
  } catch (error) {
    code = codeOf(error);
  }
  return code;
}

/** Tells why a command ended and answers its exit code. Anything unforeseen is a bug and keeps its stack. */
function codeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const refusal = asRefusal(error);
  if (!refusal) throw error;
  return tellRefusal(refusal);
}

/** Trouble of the database or the system in a sentence; undefined for a bug. */
function asRefusal(error: unknown): Refusal | undefined {
  const refusal = refusalOf(error);
  if (refusal instanceof Refusal) return refusal;
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? undefined : new Refusal(message);
}

/** Commands that bring an older schema up unasked. The others may run beside a service of an older release. */
const UPGRADING: ReadonlySet<string> = new Set(['serve', 'init']);

/** What this command has for settings that are not given, where it differs from the table. */
function standardsOf(command: Command): Environment {
  return UPGRADING.has(command.name()) ? {} : { [SETTINGS.migrate.env]: 'check' };
}

function withStandards(command: Command, environment: Environment): Environment {
  return { ...standardsOf(command), ...environment };
}

function exitCodes(): string {
  return `
Exit codes: ${EXIT.done} done; ${EXIT.failed} could not be done; ${EXIT.usage} the command line or a setting is not right;
  ${EXIT.linesRefused} an import ended and refused some lines.`;
}

/** Gives a command the flags of these settings, with help from the table. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const { flag, value, doc, env, fallback: common } = SETTINGS[name] as (typeof SETTINGS)['database'];
    if (flag === undefined) continue;
    const fallback = standardsOf(command)[env] ?? common;
    const standard = fallback === undefined || fallback === '' ? '' : `, ${fallback} unless given`;
    const option = new Option(value ? `--${flag} <${value}>` : `--${flag}`, `${doc} (${env}${standard})`);
    command.addOption(option);
  }
  return command;
}

/** Gives a command the flags of the settings that decide about the database. */
export function addDatabaseSettings(command: Command): Command {
  return addSettings(command, DATABASE_SETTINGS);
}

function flagsOf(command: Command): Flags {
  const flags: Flags = {};
  for (const [name, { flag }] of Object.entries(SETTINGS) as [SettingName, { flag?: string }][]) {
    if (flag === undefined) continue;
    const option = new Option(`--${flag}`);
    const said: unknown = command.opts()[option.attributeName()];
    // Commander turns round what begins with no-: it is true until it is given.
    const given = option.negate ? (said === false ? true : undefined) : said;
    if (given !== undefined) flags[name] = String(given);
  }
  return flags;
}

/** Flags as a command line has them. */
export function written(flags: Flags): string[] {
  return (Object.entries(flags) as [SettingName, string][]).flatMap(([name, value]) => {
    const { flag, value: named } = SETTINGS[name] as (typeof SETTINGS)['database'];
    if (named === undefined) return value === 'true' ? [`--${flag}`] : [];
    return [`--${flag}`, value];
  });
}
