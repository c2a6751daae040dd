import { isNotEmpty, isTrue, listOf } from './values.ts';

/** A row of the settings table. Flag and variable follow from its name. */
export interface SettingRow<T> {
  /** Where the flag is not the name of the row with hyphens. */
  readonly flag?: string;
  /** The placeholder of the value in help texts; absent for a switch. */
  readonly value?: string;
  /** The default, as it would be given; absent for a setting without one. */
  readonly defaultValue?: string;
  /** For help texts: a phrase. */
  readonly doc: string;
  /** What docs/reference/settings.md adds to it: sentences, with links as that page has them. */
  readonly details?: string;
  /** Without a flag: it must not be visible in a process list. */
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

/** The whole definition of a setting. */
export interface Setting extends SettingRow<unknown> {
  /** `AUTHREALM_…`; a flag wins over it. */
  readonly env: string;
}

/** The settings of these rows: `tlsCert` is `--tls-cert` and `AUTHREALM_TLS_CERT`. */
export function nameSettings<R extends Readonly<Record<string, SettingRow<unknown>>>>(rows: R) {
  const settings = Object.entries(rows).map(([name, row]) => {
    const flag = row.flag ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const env = `AUTHREALM_${flag.replaceAll('-', '_').toUpperCase()}`;
    return [name, Object.freeze({ ...row, env, ...(row.secret ? {} : { flag }) })];
  });
  return Object.freeze(Object.fromEntries(settings)) as {
    readonly [N in keyof R]: R[N] & Omit<Setting, 'parse' | 'defaultValue'>;
  };
}

/** The type of a setting's value; with undefined if it has no default. */
export type ValueOf<R> = R extends { readonly parse: (raw: string) => infer T }
  ? R extends { readonly defaultValue: string }
    ? Exclude<T, undefined>
    : T
  : never;

export function file(
  row: Pick<SettingRow<string>, 'doc' | 'details'> & Required<Pick<SettingRow<string>, 'file'>>,
) {
  return { ...row, value: 'FILE', parse: isNotEmpty, expects: 'a path' };
}

/** A list, empty by default: a flag that may be repeated, or values that are separated by spaces or commas. */
export function list<T>({ parse, ...row }: SettingRow<T>) {
  return { ...row, isList: true as const, defaultValue: '', parse: listOf(parse) };
}

/** A switch, off by default. */
export function toggle(row: Pick<SettingRow<boolean>, 'doc' | 'details'>) {
  return { ...row, defaultValue: 'false', parse: isTrue, expects: 'true or false' };
}
