import { readFileSync } from 'node:fs';
import { readTarget, TARGET_RULE, type TargetRules } from '../../access/outbound/target.ts';
import { Refusal } from '../../model/fault.ts';
import { fileErrorText } from '../../model/file_error.ts';
import { isLoopbackHost } from '../../model/loopback.ts';
import { fileOf } from '../../ops/store/open.ts';
import {
  databaseContradictions,
  masterKeySource,
  passwordOnCommandLine,
  withPasswordFiles,
} from './databases.ts';
import type { Setting } from './setting.ts';
import { SETTINGS, type SettingName, type Settings } from './settings.ts';

export { DATABASE_SETTINGS } from './database_settings.ts';
export * from './databases.ts';
export { SETTINGS, type SettingName, type Settings } from './settings.ts';

/** Values from the command line, by setting. */
export type Flags = Partial<Record<SettingName, string>>;

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface ReadOptions {
  /** Variables that commands read in addition to the settings. */
  readonly otherNames?: readonly string[];
  /** Whether the command listens: only then the settings of an address are checked. */
  readonly listens?: boolean;
  readonly createsDatabase?: boolean;
}

/**
 * Reads all settings from flags and environment. Throws one Refusal that names every mistake, without values that may be
 * secret.
 */
export function readSettings(
  flags: Flags,
  environment: Environment,
  { otherNames = [], listens = false, createsDatabase = true }: ReadOptions = {},
): Settings {
  const known = new Set([...Object.values(SETTINGS).map(({ env }) => env), ...otherNames]);
  const mistakes = Object.keys(environment)
    .filter((name) => name.startsWith('AUTHREALM_') && !known.has(name))
    .map((name) => `${name} is not a variable of authrealm: see --help of the command for the list`);
  const values: Partial<Record<SettingName, unknown>> = {};
  for (const [name, row] of Object.entries(SETTINGS) as [SettingName, Setting][]) {
    const raw = flags[name] ?? environment[row.env] ?? row.defaultValue;
    if (raw === undefined) continue;
    const value = row.parse(raw);
    if (value !== undefined) values[name] = value;
    else mistakes.push(`${sourceOf(row, flags[name])} must be ${row.expectsFor?.(raw) ?? row.expects}`);
  }
  const settings = values as Settings;
  mistakes.push(...contradictionsOf(values as Partial<Settings>));
  for (const name of ['database', 'migrateDatabase'] as const) {
    const { flag, env } = SETTINGS[name];
    if (flags[name] !== undefined) mistakes.push(...passwordOnCommandLine(flag ?? '', settings[name], env));
  }
  if (listens) mistakes.push(...publicAddressMistakes(values as Partial<Settings>));
  if (mistakes.length > 0) throw new Refusal(mistakes.join('\n'), { isUsage: true });
  return Object.freeze({ ...settings, ...withPasswordFiles(settings), createsDatabase });
}

/** The value of a setting, and its source. */
export interface SettingOrigin {
  readonly env: string;
  /** As it was given; a secret is masked, and an absent value is empty. */
  readonly value: string;
  readonly from: 'flag' | 'environment' | 'file' | 'default' | 'not given';
}

/** Where settings come from: a flag wins over the environment, and that over the file. */
export interface SettingSources {
  readonly flags: Flags;
  readonly environment: Environment;
  readonly file: Environment;
  /** That of the file. */
  readonly path?: string | undefined;
}

/** Every row of the table, in its order. */
export function originsOf({ flags, environment, file }: SettingSources): readonly SettingOrigin[] {
  return (Object.entries(SETTINGS) as [SettingName, Setting][]).map(([name, row]) => {
    const given = [
      ['flag', flags[name]],
      ['environment', environment[row.env]],
      ['file', file[row.env]],
      ['default', row.defaultValue],
    ] as const;
    const [from, value = ''] = given.find(([, each]) => each !== undefined) ?? ['not given'];
    return { env: row.env, value: row.secret && value !== '' ? '***' : (row.redact?.(value) ?? value), from };
  });
}

/** Whether a settings file has a value that is not displayed as it is. */
export function hasSecrets(file: Environment): boolean {
  const origins = originsOf({ flags: {}, environment: {}, file });
  return origins.some(({ env, value, from }) => from === 'file' && value !== file[env]);
}

function sourceOf(row: Setting, flag: string | undefined): string {
  return flag === undefined ? row.env : `--${row.flag}`;
}

/** Checks settings against each other. Settings with an invalid value are undefined here, and not checked. */
function contradictionsOf(settings: Partial<Settings>): string[] {
  const found = [...databaseContradictions(settings)];
  if ((settings.tlsCert === undefined) !== (settings.tlsKey === undefined)) {
    found.push('--tls-cert and --tls-key are required together: pass both or neither');
  }
  if (settings.offline && settings.issuersFile !== undefined) {
    found.push(
      '--issuers-file needs the keys of its issuers, which --offline does not fetch: pass only one of the two',
    );
  }
  for (const name of ['clientRate', 'addressRate', 'badTokenRate', 'grantRate'] as const) {
    const rate = settings[name];
    if (rate === undefined || rate === 'off' || rate.requests >= (settings.processes ?? 1)) continue;
    found.push(`--${SETTINGS[name].flag} must allow at least one request for each of the processes`);
  }
  return found;
}

/** Returns the rule that a URL breaks if no request may be sent to it, whatever its name resolves to. */
export function urlRule(settings: Partial<Settings>): (url: string | undefined) => string | undefined {
  const rules = targetRules(settings);
  return (url) => (url === undefined || readTarget(url, rules) ? undefined : TARGET_RULE);
}

/** Where requests may be sent. A service that other machines reach sends no plain HTTP to services of this machine. */
export function targetRules({ allowPrivate = [], host = '' }: Partial<Settings>): TargetRules {
  return { allowPrivate, allowHttp: isLoopbackHost(host) };
}

/** Checks the settings of an address that other machines can reach. */
function publicAddressMistakes(settings: Partial<Settings>): string[] {
  const found: string[] = [];
  const hasTls = settings.tlsCert !== undefined && settings.tlsKey !== undefined;
  if (settings.host === undefined || isLoopbackHost(settings.host)) return found;
  if (settings.baseUrl === undefined) {
    found.push(
      `--host ${settings.host} is not loopback: pass --base-url with the URL under which clients reach the service`,
    );
  }
  if (!hasTls && !settings.trustedProxies?.length) {
    found.push(
      `--host ${settings.host} is not loopback: tokens would cross the network in clear text. Pass --tls-cert and ` +
        '--tls-key, or --trusted-proxy with the network of the proxy that terminates TLS',
    );
  }
  return found;
}

export function namedFiles(settings: Settings) {
  const rows = Object.entries(SETTINGS) as [SettingName, Setting][];
  return rows.flatMap(([name, { file: kind, flag = '' }]) => {
    const path = settings[name];
    return kind !== undefined && typeof path === 'string' ? [{ flag, path, kind }] : [];
  });
}

/** The files that no other user should read: the database, its master key, and those that settings name or are in. */
export function privateFiles(settings: Settings): readonly string[] {
  const key = masterKeySource(settings);
  const named = namedFiles(settings).flatMap(({ path, kind }) => (kind === 'public' ? [] : [path]));
  const own = [fileOf(settings.database), 'path' in key ? key.path : undefined, settings.secretSettingsFile];
  return [...new Set([...own, ...named].filter((path) => path !== undefined))];
}

export function readTls({ tlsCert, tlsKey }: Settings): { cert: string; key: string } | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return { cert: readSettingFile('--tls-cert', tlsCert), key: readSettingFile('--tls-key', tlsKey) };
}

/** Reads the file that a setting names. Throws Refusal if it cannot be read. */
export function readSettingFile(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`${name}: ${path} cannot be read: ${fileErrorText(error)}`);
  }
}
