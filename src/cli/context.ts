import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import {
  DATABASE_SETTINGS,
  type Environment,
  type Flags,
  hasSecrets,
  originsOf,
  readSettings,
  SETTINGS,
  type SettingName,
  type SettingSources,
  type Settings,
} from '../app/config/parse.ts';
import type { Setting } from '../app/config/setting.ts';
import { groupOf } from '../app/config/setting_groups.ts';
import { DEFAULT_SETTINGS_FILE, readSettingsFile } from '../app/config/settings_file.ts';
import { printNotice } from '../ops/process/standard_streams.ts';
import { commandLine, pathIn } from './invocation.ts';

/** The variables of a service's URL and its client; the secret has no option, because other users can read command lines. */
export const CONNECTION_VARIABLES = {
  url: 'AUTHREALM_URL',
  clientId: 'AUTHREALM_CLIENT_ID',
  clientSecret: 'AUTHREALM_CLIENT_SECRET',
} as const;

/** What the program passes to a command in addition to its own arguments. */
export interface CliContext extends ReturnType<typeof openSettings> {
  setExitCode(code: number): void;
}

export function openSettings(environment: Environment) {
  let known: SettingSources | undefined;

  /** Of the one command that runs. */
  function sourcesOf(command: Command): SettingSources {
    if (known) return known;
    const flags = flagsOf(command);
    const ownFile = existsSync(DEFAULT_SETTINGS_FILE) ? DEFAULT_SETTINGS_FILE : undefined;
    const path = flags.config ?? environment[SETTINGS.config.env] ?? ownFile;
    known = { flags, environment, path, file: path === undefined ? {} : readSettingsFile(path) };
    // The processes of a service repeat what it has reported.
    const isUsed = command.name() !== 'worker' && originsOf(known).some(({ from }) => from === 'file');
    if (isUsed) printNotice(`authrealm: using settings from ${path}`);
    return known;
  }

  function environmentOf(command: Command): Environment {
    return { ...sourcesOf(command).file, ...environment };
  }

  const settingsOf = (command: Command, listens: boolean): Settings =>
    readSettings(
      flagsOf(command),
      { ...defaultsOf(command), ...environmentOf(command) },
      { otherNames: Object.values(CONNECTION_VARIABLES), listens, createsDatabase: isCreating(command) },
    );
  return {
    /** The flags of a command that are settings, as given. */
    flagsOf,
    /** The environment, and the variables of the settings file that it lacks. */
    environmentOf,
    /** The value of every setting, and its source. */
    originsOf: (command: Command) => originsOf(sourcesOf(command)),
    /** Reads the settings from the command's flags, the environment and the settings file. */
    settingsOf: (command: Command) => settingsOf(command, false),
    /** As `settingsOf`, and checks what a listening address requires, TLS for example. */
    listeningSettingsOf(command: Command): Settings {
      const [sources, settings] = [sourcesOf(command), settingsOf(command, true)];
      return {
        ...settings,
        linkCommand: linkCommand(sources, settings),
        secretSettingsFile: hasSecrets(sources.file) ? sources.path : undefined,
      };
    },
  };
}

/**
 * The command that prints a sign-in link, for a terminal without the flags and the environment of the service. Strangers can read it
 * on the sign-in page, so the URL of a server is left to its variable.
 */
export function linkCommand({ flags, environment }: SettingSources, settings: Settings): string {
  const names = [
    'config',
    'database',
    'databasePasswordFile',
    'masterKeyFile',
    'previousMasterKeyFile',
  ] as const;
  const words = names.flatMap((name) => {
    const { env, flag } = SETTINGS[name];
    if ((flags[name] ?? environment[env]) === undefined) return [];
    const path = pathIn(settings, name);
    return [`--${flag}`, path === undefined ? `"$${env}"` : commandLine(path)];
  });
  return ['authrealm console link --role support', ...words].join(' ');
}

/**
 * Commands that create a missing database, and migrate an older schema by default. The others may run in the wrong folder, or next
 * to a service of an older release.
 */
const isCreating = (command: Command) => ['serve', 'init'].includes(command.name());

/** Defaults of this command where they differ from the table of settings. */
function defaultsOf(command: Command): Environment {
  return isCreating(command) ? {} : { [SETTINGS.migrate.env]: 'check' };
}

/** Adds the flags of these settings to a command; the help texts come from the table of settings. */
export function addSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const row: Setting = SETTINGS[name];
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
