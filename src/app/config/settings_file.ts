import { readFileSync, statSync } from 'node:fs';
import { Refusal } from '../../model/fault.ts';
import { fileErrorText } from '../../model/file_error.ts';

/** Read by every command if it exists and no other file is named. */
export const DEFAULT_SETTINGS_FILE = '/etc/authrealm/authrealm.conf';

const OTHERS_MAY_WRITE = 0o022;

/**
 * Reads `NAME=value` lines as systemd reads an EnvironmentFile (systemd.exec(5)). Throws Refusal for a file that cannot be read,
 * that other users may write, or that has a line which is no assignment, which systemd would ignore.
 */
export function readSettingsFile(path: string): Readonly<Record<string, string>> {
  let text: string;
  try {
    if ((statSync(path).mode & OTHERS_MAY_WRITE) !== 0)
      throw new Refusal(`other users may write the settings file ${path}: run chmod go-w`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(`the settings file ${path} cannot be read: ${fileErrorText(error)}`);
  }
  return parseSettingsFile(text, path);
}

/** A value: unquoted to the end of the line, or quoted to the closing quote, also over several lines. */
const ASSIGNMENT =
  /^[ \t]*([A-Za-z_][A-Za-z0-9_]*)=[ \t\r]*(?:'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"|(?!['"])((?:\\[\s\S]|[^\\\n])*))[ \t\r]*(?:\n|$)/;
const IGNORED = /^[ \t\r]*(?:[#;](?:\\\n|[^\n])*)?(?:\n|$)/;

export function parseSettingsFile(text: string, path: string): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  let rest = text;
  while (rest !== '') {
    const ignored = IGNORED.exec(rest);
    const found = ignored ? undefined : ASSIGNMENT.exec(rest);
    const match = ignored ?? found;
    if (!match) {
      const line = text.slice(0, text.length - rest.length).split('\n').length;
      throw new Refusal(`line ${line} of the settings file ${path} is not a NAME=value assignment`);
    }
    if (found) values[found[1] as string] = textOf(found);
    rest = rest.slice(match[0].length);
  }
  return values;
}

function textOf([, , single, double, plain = '']: RegExpExecArray): string {
  if (single !== undefined) return single;
  if (double !== undefined) return double.replace(/\\(\n|["\\`$])/g, (_, next: string) => unescaped(next));
  return plain.trim().replace(/\\([\s\S])/g, (_, next: string) => unescaped(next));
}

/** A backslash at the end of a line continues it. */
function unescaped(character: string): string {
  return character === '\n' ? '' : character;
}
