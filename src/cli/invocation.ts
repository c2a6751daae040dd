import { realpathSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { type Flags, SETTINGS, type SettingName, type Settings } from '../config/parse.ts';
import { fileOf } from '../store/open.ts';
import type { Environment } from './context.ts';

/** Printed commands of this program: they work as pasted, from any folder. */

const PROGRAM = join(import.meta.dir, '../../bin/authrealm');

/**
 * The absolute path of this program; where the PATH leads to it, the path found there. Not its name alone: a terminal without
 * that PATH would run another program, or `npx` would fetch one.
 */
export function programPath({ PATH = '' }: Environment): string {
  const found = Bun.which('authrealm', { PATH });
  return found && isAbsolute(found) && realpathSync(found) === realpathSync(PROGRAM) ? found : PROGRAM;
}

const ALL = Object.keys(SETTINGS) as SettingName[];

/** These flags for another folder: the database and every file by their absolute paths, also those of variables and defaults. */
export function absoluteFlags(flags: Flags, settings: Settings, names: readonly SettingName[] = ALL): Flags {
  const absolute = names.map((name) => [name, pathIn(settings, name) ?? flags[name]] as const);
  return Object.fromEntries(absolute.filter(([, value]) => value !== undefined));
}

/** The absolute path of the file that a setting names. */
function pathIn(settings: Settings, name: SettingName): string | undefined {
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
