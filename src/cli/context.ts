import { type Command, Option } from 'commander';
import {
  DATABASE_SETTINGS,
  type Flags,
  originsOf,
  readSettings,
  SETTINGS,
  type SettingName,
  type SettingOrigin,
  type Settings,
} from '../config/parse.ts';
import type { Setting } from '../config/setting.ts';
import { groupOf } from '../config/setting_groups.ts';
import { CONNECTION_VARIABLES } from './connection.ts';
import { programPath } from './invocation.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What the program passes to a command in addition to its own arguments. */
export interface CliContext extends CliSettings {
  readonly environment: Environment;
  setExitCode(code: number): void;
}

interface CliSettings {
  /** Reads the settings from the command's flags and the environment. */
  settingsOf(command: Command): Settings;
  /** As `settingsOf`, and checks what a listening address requires, TLS for example. */
  listeningSettingsOf(command: Command): Settings;
  /** The value of every setting, and its source. */
  originsOf(command: Command): readonly SettingOrigin[];
  /** The flags of a command that are settings, as given. */
  flagsOf(command: Command): Flags;
  /** The path of this program, for printed commands. */
  readonly programPath: string;
}

export function openSettings(environment: Environment): CliSettings {
  const settingsOf = (command: Command, listens: boolean): Settings =>
    readSettings(
      flagsOf(command),
      { ...defaultsOf(command), ...environment },
      { otherNames: Object.values(CONNECTION_VARIABLES), listens },
    );
  return {
    flagsOf,
    originsOf: (command) => originsOf(flagsOf(command), environment),
    settingsOf: (command) => settingsOf(command, false),
    listeningSettingsOf: (command) => settingsOf(command, true),
    programPath: programPath(environment),
  };
}

/** Commands that migrate an older schema by default. The others may run next to a service of an older release. */
const UPGRADING: ReadonlySet<string> = new Set(['serve', 'init']);

/** Defaults of this command where they differ from the table of settings. */
function defaultsOf(command: Command): Environment {
  return UPGRADING.has(command.name()) ? {} : { [SETTINGS.migrate.env]: 'check' };
}

/** Adds the flags of these settings to a command; the help texts come from the table of settings. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const row: Setting<unknown> = SETTINGS[name];
    const { flag, value, doc, env, defaultValue: common, isList } = row;
    if (flag === undefined) continue;
    const defaultValue = defaultsOf(command)[env] ?? common;
    const addition = defaultValue ? `, default ${defaultValue}` : '';
    const option = new Option(value ? `--${flag} <${value}>` : `--${flag}`, `${doc} (${env}${addition})`);
    if (isList) option.argParser((given: string, before?: string) => [before, given].join(' ').trim());
    option.helpGroup(`${groupOf(name)}:`);
    command.addOption(option);
  }
  return command;
}

/** Adds the flags that choose the database to a command. */
export function addDatabaseSettings(command: Command): Command {
  return addSettings(command, DATABASE_SETTINGS);
}

function flagsOf(command: Command): Flags {
  const flags: Flags = {};
  for (const [name, { flag }] of Object.entries(SETTINGS) as [SettingName, { flag?: string }][]) {
    if (flag === undefined) continue;
    const option = new Option(`--${flag}`);
    const value: unknown = command.opts()[option.attributeName()];
    // Commander negates an option that begins with no-: its value is true until the option is given.
    const given = option.negate ? (value === false ? true : undefined) : value;
    if (given !== undefined) flags[name] = String(given);
  }
  return flags;
}

/** The flags as words of a command line. */
export function toArguments(flags: Flags): string[] {
  return (Object.entries(flags) as [SettingName, string][]).flatMap(([name, value]) => {
    const { flag, value: named } = SETTINGS[name] as (typeof SETTINGS)['database'];
    if (named === undefined) return value === 'true' ? [`--${flag}`] : [];
    return [`--${flag}`, value];
  });
}
