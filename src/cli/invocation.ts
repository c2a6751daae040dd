import { resolve } from 'node:path';
import type { Flags, SettingName, Settings } from '../app/config/parse.ts';
import { SETTINGS } from '../app/config/parse.ts';
import { IS_SINGLE_FILE, programFile } from '../model/program_files.ts';
import { fileOf } from '../ops/store/open.ts';

/** Printed commands of this program: they work as pasted, from any folder. */

/** The absolute path of this program: a terminal with another PATH would run another one by its name. */
export const PROGRAM_PATH = IS_SINGLE_FILE ? process.execPath : programFile('bin/authrealm');

const ALL = Object.keys(SETTINGS) as SettingName[];

/** These flags for another folder: the database and every file by their absolute paths, also those of variables and defaults. */
export function absoluteFlags(flags: Flags, settings: Settings, names: readonly SettingName[] = ALL): Flags {
  const absolute = names.map((name) => [name, pathIn(settings, name) ?? flags[name]] as const);
  return Object.fromEntries(absolute.filter(([, value]) => value !== undefined));
}

/** The absolute path of the file that a setting names. */
export function pathIn(settings: Settings, name: SettingName): string | undefined {
  const value = settings[name];
  const isFile = 'value' in SETTINGS[name] && SETTINGS[name].value === 'FILE';
  const path =
    name === 'database' ? fileOf(settings.database) : isFile && typeof value === 'string' ? value : undefined;
  return path === undefined ? undefined : resolve(path);
}

/** A command line for a shell. */
export function commandLine(...words: readonly string[]): string {
  return words.map(quoted).join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
