import { isNotEmpty, isTrue, listOf } from './values.ts';

/** A row of the settings table: the whole definition of a setting. */
export interface Setting<T> {
  /** `AUTHREALM_…`; a flag wins over it. */
  readonly env: string;
  /** Absent for secrets, which must not be visible in a process list. */
  readonly flag?: string;
  /** The placeholder of the value in help texts; absent for a switch. */
  readonly value?: string;
  /** The default, as it would be given; absent for a setting without one. */
  readonly defaultValue?: string;
  /** For help texts: a phrase. */
  readonly doc: string;
  /** What docs/reference/settings.md adds to it: sentences, with links as that page has them. */
  readonly details?: string;
  readonly secret?: true;
  /** Of a setting that names a file: whether only its owner should read it, and whether the program writes it. */
  readonly file?: 'public' | 'secret' | 'written';
  /** The flag may be repeated; its values are joined by spaces. */
  readonly isList?: true;
  /** Returns undefined for an invalid value; `expects` describes the valid ones. */
  readonly parse: (raw: string) => T | undefined;
  readonly expects: string;
  /** A more precise description for a value that is nearly valid. Repeats nothing of the value. */
  readonly expectsFor?: (raw: string) => string | undefined;
  /** The value without its secrets, to be displayed; default: the value itself. */
  readonly redact?: (raw: string) => string;
}

export interface Defaulted<T> extends Setting<T> {
  readonly defaultValue: string;
}

/** A setting without a default. */
export function optional<T>(row: Setting<T>): Setting<T> {
  return Object.freeze(row);
}

/** A setting that always has a value. */
export function defaulted<T>(row: Defaulted<T>): Defaulted<T> {
  return Object.freeze(row);
}

type SettingHeader = Pick<Setting<unknown>, 'env' | 'flag' | 'doc' | 'details'>;

/** A setting that names a file. */
export function file(row: SettingHeader & Required<Pick<Setting<string>, 'file'>>): Setting<string> {
  return optional({ ...row, value: 'FILE', parse: isNotEmpty, expects: 'a path' });
}

/** A list, empty by default: a flag that may be repeated, or values that are separated by spaces or commas. */
export function list<T>({ parse, ...row }: Setting<T>): Defaulted<readonly T[]> {
  return defaulted({ ...row, isList: true, defaultValue: '', parse: listOf(parse) });
}

/** A switch, off by default. */
export function toggle(row: SettingHeader): Defaulted<boolean> {
  return defaulted({ ...row, defaultValue: 'false', parse: isTrue, expects: 'true or false' });
}
