import type { Command, Option } from 'commander';
import { SETTINGS } from '../config/parse.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The client secret for commands that call a running service. Not an option: other users can read command lines. */
export const CLIENT_SECRET_VARIABLE = 'AUTHREALM_CLIENT_SECRET';

const SETTING_FLAGS: ReadonlySet<string | undefined> = new Set(
  Object.values(SETTINGS).flatMap((row) => ('flag' in row ? [`--${row.flag}`] : [])),
);

/** The options of a command that are not settings. */
function ownOptions(command: Command): readonly Option[] {
  return command.options.filter(({ long }) => long !== undefined && !SETTING_FLAGS.has(long));
}

/**
 * Gives every option that is not a setting an environment variable named after its command, AUTHREALM_IMPORT_ON_ERROR for
 * example, which the help texts show. Settings, and options that several commands share, have their own names. Returns all
 * names.
 */
export function nameVariables(command: Command, path = 'AUTHREALM'): string[] {
  return command.commands.flatMap((child) => {
    const own = `${path}_${upper(child.name())}`;
    const named = ownOptions(child).map((option) => {
      const variable = option.envVar ?? `${own}_${upper(option.long ?? '')}`;
      option.env(variable);
      return variable;
    });
    return [...named, ...nameVariables(child, own)];
  });
}

function upper(name: string): string {
  return name.replace(/^--/, '').replaceAll('-', '_').toUpperCase();
}

/**
 * The command line with options from the environment that it does not set. They are inserted right after the name of the
 * command, because after `--` every word is an argument.
 */
export function withVariables(program: Command, argv: readonly string[], environment: Environment): string[] {
  let command = program;
  let named = 0;
  for (const word of argv) {
    const child = command.commands.find((each) => each.name() === word);
    if (!child) break;
    command = child;
    named += 1;
  }
  const words = argv.slice(named);
  const end = words.indexOf('--');
  const optional = end < 0 ? words : words.slice(0, end);
  const added = ownOptions(command).flatMap((option) => {
    const value = option.envVar === undefined ? undefined : environment[option.envVar];
    const isGiven = optional.some((word) => word === option.long || word.startsWith(`${option.long}=`));
    return value === undefined || isGiven ? [] : optionWords(option, value);
  });
  return [...argv.slice(0, named), ...added, ...words];
}

/** An option as words of a command line; a boolean one is set by `true` and `1`. */
function optionWords({ long, required }: Option, value: string): string[] {
  if (required) return [`${long}=${value}`];
  return value === 'true' || value === '1' ? [long ?? ''] : [];
}
