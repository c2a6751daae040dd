import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import type { Environment, Flags, SettingName, Settings } from '../app/config/parse.ts';
import { SETTINGS } from '../app/config/parse.ts';
import { IS_SINGLE_FILE, programFile } from '../model/program_files.ts';
import { fileOf } from '../ops/store/open.ts';

/** Printed commands of this program: they work as pasted, from any folder. */

const PROGRAM = IS_SINGLE_FILE ? process.execPath : programFile('bin/authrealm');
/** The name of the launcher, or the name or path by which the single file was called. */
const NAME = IS_SINGLE_FILE ? process.argv0 : 'authrealm';

/**
 * The absolute path of this program; where its name leads to it, through the PATH or a link, the path found there. Not its name
 * alone: a terminal without that PATH would run another program. The PATH of `npx` leads into a cache.
 */
export function programPath({ PATH = '', npm_command: npmCommand }: Environment): string {
  if (npmCommand !== undefined) return PROGRAM;
  const found = NAME.includes('/') ? resolve(NAME) : Bun.which(NAME, { PATH });
  const isThis =
    found && isAbsolute(found) && existsSync(found) && realpathSync(found) === realpathSync(PROGRAM);
  return isThis ? found : PROGRAM;
}

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
